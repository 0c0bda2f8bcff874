// Attempts: the same work in new transactions, while the database says that a new one may succeed.
// Used by the unit of work and the stage.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "idempotency/connection.hpp"
#include "idempotency/error.hpp"
#include "idempotency/transaction.hpp"
#include "idempotency/unit_of_work.hpp"

namespace idempotency {

/// A connection on loan; given back at the end of its life.
class Lease {
public:
    Lease(ConnectionSource& source, std::chrono::steady_clock::time_point deadline)
        : source_(source), connection_(source.acquire(deadline)) {}
    ~Lease() { source_.release(std::move(connection_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    [[nodiscard]] Connection& connection() const noexcept { return *connection_; }

private:
    ConnectionSource& source_;
    std::unique_ptr<Connection> connection_;
};

/// What an attempt gets.
struct Attempt {
    Connection& connection;
    Transaction& transaction;
    int number;  ///< 1 for the first
};

/// Runs `work` in a new transaction; again, after a jittered pause, while it throws an error that is worth a new attempt, at most
/// tx_retry_max times more. A transaction that `work` leaves open is rolled back.
/// @param deadline after it no new attempt begins, and no connection is waited for
/// @param worth_a_new_attempt asked about each error while attempts are left
/// @throws what the last attempt threw
void run_attempts(ConnectionSource& source, const UnitOfWorkOptions& options,
                  std::chrono::steady_clock::time_point deadline, const std::function<void(Attempt)>& work,
                  const std::function<bool(const Error&)>& worth_a_new_attempt);

}  // namespace idempotency
