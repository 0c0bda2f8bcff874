// Every difference between the server versions that we support (15 to 18), and nothing else.
// Used by the subjects, which are written for the newest version.
#pragma once

#include "pg/server.hpp"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 190000
#error "pg_idempotency supports PostgreSQL 15 to 18"
#endif

#if PG_VERSION_NUM >= 160000
extern "C" {
#include <varatt.h>
}
#endif

namespace pg {

/// Whether this transaction holds the lock in this mode. 17 added a parameter for stronger modes.
inline bool lock_held_by_me(const LOCKTAG& tag, LOCKMODE mode) {
#if PG_VERSION_NUM >= 170000
    return LockHeldByMe(&tag, mode, false);
#else
    return LockHeldByMe(&tag, mode);
#endif
}

}  // namespace pg
