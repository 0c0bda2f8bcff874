// The lock on one key: held by the transaction that runs the first request, waited for by its repeats.
// Used by claim, complete and save_final.
#pragma once

#include "core/uuid.hpp"
#include "pg/boundary.hpp"

namespace idempotency {

/// A transaction-level advisory lock on a 64-bit hash of (principal, key), in a lock class of its own, so that it meets no advisory lock
/// of the application. Owned by the (sub)transaction: a rollback, also to a savepoint, releases it.
class KeyLock {
public:
    KeyLock(const Uuid& principal_id, const Uuid& key);

    enum class Acquired { no, yes, held_before };

    /// Takes the lock when it is free, or when this transaction holds it already; never waits.
    [[nodiscard]] Acquired try_acquire() const;

    /// Waits for the lock, in a subtransaction that writes nothing and so costs no transaction id.
    /// How long is decided by idempotency.wait_timeout, or by lock_timeout when that is -1.
    /// @return whether the lock came in time
    /// @throws pg::ServerError for everything but the timeout (a deadlock, a cancelled query, ...)
    [[nodiscard]] bool wait() const;

    /// Gives up one try_acquire or wait, before the transaction ends.
    void release() const;

    /// Whether this transaction holds the lock.
    [[nodiscard]] bool held() const;

private:
    Uuid key_;
    LOCKTAG tag_{};
};

}  // namespace idempotency
