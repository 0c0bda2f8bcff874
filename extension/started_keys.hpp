// The keys that this transaction started, and the commit guard: a transaction that leaves one in progress does not commit.
// Told by claim and complete; the server tells it of savepoints, COMMIT and ROLLBACK.
#pragma once

#include "core/uuid.hpp"

namespace idempotency::started_keys {

/// Begins to listen to the server's transaction events. Called by _PG_init.
void watch_transactions();

/// begin said started for this key, in the current (sub)transaction.
void add(const Uuid& principal_id, const Uuid& key);

/// The key was completed in the current (sub)transaction; a rollback of that one takes it back.
void mark_completed(const Uuid& principal_id, const Uuid& key);

}  // namespace idempotency::started_keys
