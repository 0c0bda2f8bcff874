// A unit of work: one transaction, run again while the database says that a new attempt may succeed.
// Used by the stage; an application may use it alone for transactions without a key.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "idempotency/connection.hpp"
#include "idempotency/transaction.hpp"

namespace idempotency {

/// How a unit of work waits and repeats.
struct UnitOfWorkOptions {
    /// SET LOCAL lock_timeout of every transaction: how long one statement may wait for a lock. 0: for ever.
    std::chrono::milliseconds lock_timeout{5000};
    /// New attempts after the first one failed with a retryable error (the seed's database.tx_retry_max).
    int tx_retry_max = 3;
    /// How long to wait for a connection.
    std::chrono::milliseconds acquire_timeout{5000};
    /// Parse each statement once a connection, for up to 256 different ones. Turn it off behind a transaction pooler that does not
    /// follow prepared statements (PgBouncer before 1.21).
    bool prepared_statements = true;
};

/// Runs work inside a transaction and commits it.
class UnitOfWork {
public:
    /// @param source must outlive this object
    UnitOfWork(ConnectionSource& source, UnitOfWorkOptions options);

    /// Opens a transaction, runs `work` in it and commits. When `work` or COMMIT throws a retryable Error the transaction is rolled back
    /// and `work` runs again in a new one, after a jittered pause, up to tx_retry_max times. Every other exception rolls back and
    /// travels on. A commit in doubt is never repeated here: it travels on as an Error with in_doubt().
    /// @param work called once an attempt; must have no effect outside the transaction
    /// @throws Error the last attempt's, or in_doubt()
    void run(const std::function<void(Transaction&)>& work);

private:
    ConnectionSource& source_;
    UnitOfWorkOptions options_;
};

}  // namespace idempotency
