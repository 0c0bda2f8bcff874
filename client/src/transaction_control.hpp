// Opening and ending transactions, in as few round trips as libpq's pipeline allows.
// Used by the store, the unit of work and the stage.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "idempotency/connection.hpp"
#include "idempotency/transaction.hpp"

namespace idempotency {

class Transaction::Control {
public:
    /// Opens a transaction on a connection that is outside any. Nothing is sent yet.
    /// @param lock_timeout SET LOCAL lock_timeout; 0: for ever
    [[nodiscard]] static Transaction open(Connection& connection, std::chrono::milliseconds lock_timeout);

    /// As Transaction::execute, parsing the statement once a connection when `prepared`.
    static Result execute(Transaction& transaction, std::string_view sql, std::vector<Parameter> parameters, bool prepared);

    /// The statement and COMMIT in one round trip.
    /// @return the statement's rows; it and COMMIT succeeded
    /// @throws Error the statement's or COMMIT's; ConnectionLost with in_doubt() when the connection was lost
    static Result execute_and_commit(Transaction& transaction, std::string_view sql, std::vector<Parameter> parameters,
                                     bool prepared);

    static void commit(Transaction& transaction);

    /// Never throws: a connection that cannot roll back is closed by its owner.
    static void rollback(Transaction& transaction) noexcept;

    [[nodiscard]] static bool ended(const Transaction& transaction) noexcept { return transaction.ended_; }

    /// A statement failed, and nothing but a rollback (perhaps to a savepoint) is possible.
    [[nodiscard]] static bool failed(const Transaction& transaction) noexcept;

    /// SQLSTATE of the first statement that failed; empty when none did.
    [[nodiscard]] static const std::string& failed_with(const Transaction& transaction) noexcept {
        return transaction.failed_with_;
    }

private:
    static std::vector<Result> flush(Transaction& transaction, bool committing);
};

}  // namespace idempotency
