// Opening and ending transactions, in as few round trips as libpq's pipeline allows.
// Used by the store, the unit of work and the stage.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "idempotency/connection.hpp"
#include "idempotency/transaction.hpp"
#include "idempotency/unit_of_work.hpp"

namespace idempotency {

class Transaction::Control {
public:
    /// Opens a transaction on a connection that is outside any. Nothing is sent yet.
    [[nodiscard]] static Transaction open(Connection& connection, const UnitOfWorkOptions& options);

    /// The same behind a ROLLBACK of what the connection is in the middle of, in the same round trip. `before` has ended with it.
    [[nodiscard]] static Transaction reopen(Transaction& before, const UnitOfWorkOptions& options);

    /// Lets the claim of a key travel with the next statement.
    static void queue_claim(Transaction& transaction, std::string sql, std::vector<Parameter> parameters);

    /// Runs the claim of a key now.
    /// @return its row, whatever its outcome
    static Result claim(Transaction& transaction, std::string sql, std::vector<Parameter> parameters);

    /// The row of a queued claim that did not start the key.
    [[nodiscard]] static const std::optional<Result>& refused(const Transaction& transaction) noexcept {
        return transaction.refused_;
    }

    /// As Transaction::execute.
    static Result execute(Transaction& transaction, std::string_view sql, std::vector<Parameter> parameters);

    /// The statement and COMMIT in one round trip. When nothing of the transaction was sent yet, all of it is one round trip, in the implicit
    /// transaction that the server runs between two synchronisation points.
    /// @return the statement's rows; it and COMMIT succeeded
    /// @throws Error the statement's or COMMIT's; ConnectionLost with in_doubt() when the connection was lost
    static Result execute_and_commit(Transaction& transaction, std::string_view sql, std::vector<Parameter> parameters);

    static void commit(Transaction& transaction);

    /// Never throws: a connection that cannot roll back is closed by its owner.
    static void rollback(Transaction& transaction) noexcept;

    [[nodiscard]] static bool ended(const Transaction& transaction) noexcept { return transaction.ended_; }

    /// The connection is gone, or a flush of it was cut short.
    [[nodiscard]] static bool lost(const Transaction& transaction) noexcept;

    /// Nothing was sent yet.
    [[nodiscard]] static bool unsent(const Transaction& transaction) noexcept { return !transaction.begun_; }

    /// A statement failed, and nothing but a rollback (perhaps to a savepoint) is possible.
    [[nodiscard]] static bool failed(const Transaction& transaction) noexcept;

    /// SQLSTATE of the first statement that failed; empty when none did.
    [[nodiscard]] static const std::string& failed_with(const Transaction& transaction) noexcept {
        return transaction.failed_with_;
    }

private:
    enum class Ending { open, commit, implicit };

    /// What was sent, and where its answers are.
    struct Sent {
        std::vector<std::size_t> answer_of;                               ///< of each statement
        std::vector<std::pair<std::size_t, std::string>> newly_prepared;  ///< a PREPARE's answer, and the SQL text
        bool complete = false;                                            ///< up to the synchronisation point
    };

    [[nodiscard]] static Sent send(Transaction& transaction, const std::vector<Statement>& statements);
    [[noreturn]] static void fail(Transaction& transaction, const Error& error, bool statement_was_known);
    [[nodiscard]] static std::vector<Statement> opening(std::chrono::milliseconds lock_timeout);
    static std::vector<Result> flush(Transaction& transaction, Ending ending);
};

}  // namespace idempotency
