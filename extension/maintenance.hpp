// What the maintenance procedures share: each step is a transaction of its own, one at a time, and gives way to requests.
// Used by cleanup, partitions and schedule.
#pragma once

#include <cstdint>

#include "pg/boundary.hpp"
#include "store.hpp"

namespace idempotency::maintenance {

/// Refuses a call inside a transaction block or a function: the procedure commits after every step.
/// @param procedure its name, for the message
/// @throws pg::ServerError 25001
void require_own_transaction(FunctionCallInfo fcinfo, const char* procedure);

/// Lets maintenance that runs at the same time take turns; held until the end of the transaction.
void wait_for_turn();

/// Ends the step's transaction and begins the next.
void commit();

/// Whether the error only says that another transaction is in the way.
[[nodiscard]] bool is_in_use(int sqlstate);

/// Runs one step in a subtransaction that waits no longer than `lock_timeout` for a lock. Short, and far below deadlock_timeout:
/// maintenance must not keep requests waiting, nor be part of a deadlock that another transaction pays for.
/// @return false when another transaction was in the way; then nothing of it happened
template <typename Step>
[[nodiscard]] bool give_way(const char* lock_timeout, Step step) {
    const auto error = pg::attempt([&] {
        const int nest_level = NewGUCNestLevel();
        (void)set_config_option("lock_timeout", lock_timeout, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                                false);
        step();
        AtEOXact_GUC(true, nest_level);
    });
    if (error && !is_in_use(error->sqlstate())) {
        throw *error;
    }
    return !error;
}

/// Deletes the keys that have expired at `at`, the oldest first, in batches, and tells how many in a notice. In cleanup.cpp.
void delete_expired(Oid function, TimestampTz at, std::int64_t batch_size, ExpiredIn where);

}  // namespace idempotency::maintenance

namespace idempotency {

/// Whether the key table is a partitioned one. In partitions.cpp. Needs a connection to SPI.
[[nodiscard]] bool is_partitioned(Oid function);

}  // namespace idempotency
