// A database transaction as a handler sees it, and the statements it runs.
// Made by the unit of work and the stage; used by handlers and the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/uuid.hpp"
#include "idempotency/error.hpp"

struct pg_conn;    // libpq's PGconn
struct pg_result;  // libpq's PGresult

namespace idempotency {

class Connection;

/// A parameter in text form, or NULL. Made from strings, integers and UUIDs.
class Parameter {
public:
    /// NULL.
    Parameter(std::nullopt_t) {}
    /// A text, also of a number, a time or JSON.
    Parameter(std::string text) : text_(std::move(text)) {}
    /// A text.
    Parameter(std::string_view text) : text_(std::string(text)) {}
    /// A text, terminated.
    Parameter(const char* text) : text_(std::string(text)) {}
    /// A number.
    Parameter(std::int64_t number) : text_(std::to_string(number)) {}
    /// A number.
    Parameter(int number) : text_(std::to_string(number)) {}
    /// A text, or NULL for nothing.
    Parameter(std::optional<std::string> text) : text_(std::move(text)) {}
    /// A UUID.
    Parameter(const Uuid& uuid) : text_(uuid.to_string()) {}
    /// A UUID, or NULL for nothing.
    Parameter(const std::optional<Uuid>& uuid) : text_(uuid ? std::optional(uuid->to_string()) : std::nullopt) {}

    /// The text, or null for NULL.
    [[nodiscard]] const char* c_str() const noexcept { return text_ ? text_->c_str() : nullptr; }

private:
    std::optional<std::string> text_;
};

/// The rows of one statement, in text form.
class Result {
public:
    explicit Result(pg_result* owned);  ///< takes over a libpq result, also when it throws std::bad_alloc

    /// How many rows there are.
    [[nodiscard]] std::size_t rows() const noexcept;
    /// How many columns each row has.
    [[nodiscard]] std::size_t columns() const noexcept;
    /// The value, or nothing for NULL. Row and column count from 0. Valid as long as the Result lives.
    [[nodiscard]] std::optional<std::string_view> get(std::size_t row, std::size_t column) const noexcept;
    /// Rows written by INSERT, UPDATE, DELETE or MERGE; else 0.
    [[nodiscard]] std::uint64_t affected() const noexcept;

private:
    std::shared_ptr<pg_result> result_;
};

/// A transaction that is open until its owner commits or rolls it back. Handlers get one by reference: they run
/// statements on it and never end it. One thread at a time.
///
/// BEGIN travels with the first statement, so opening a transaction costs no round trip of its own. In a deferred operation so does the
/// claim of the key; when that says that the key is not ours, the statement throws KeyNotStarted and nothing of it has happened.
class Transaction {
public:
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    ~Transaction();  ///< rolls back unless it was ended

    /// Runs one statement and waits for its rows. Do not send BEGIN, COMMIT or ROLLBACK through it.
    /// @param sql        one statement with $1, $2, ...
    /// @param parameters as many as the statement names; their types are inferred by the server
    /// @throws Error with the server's SQLSTATE; the transaction is then failed, and every later statement throws too
    /// @throws KeyNotStarted in a deferred operation; do not catch it
    Result execute(std::string_view sql, const std::vector<Parameter>& parameters = {});

    /// The libpq connection inside this transaction, for an application's own libpq calls: out of pipeline mode, nothing in
    /// flight. Leave it the same way, and inside the transaction.
    [[nodiscard]] pg_conn* native_handle();

    class Control;  ///< opens and ends transactions; for the shim only

private:
    friend class Control;

    /// A statement that waits for the next flush.
    struct Statement {
        std::string sql;
        std::vector<Parameter> parameters;
        bool is_claim = false;  ///< idempotency_begin: its outcome decides whether the transaction goes on
    };

    Transaction(Connection& connection, bool prepared_statements, std::vector<Statement> opening)
        : connection_(connection), prepared_statements_(prepared_statements), queue_(std::move(opening)) {}

    Connection& connection_;
    bool prepared_statements_;  ///< parse statements once a connection, under a name
    std::vector<Statement> queue_;
    bool begun_ = false;             ///< BEGIN was sent
    bool ended_ = false;             ///< COMMIT or ROLLBACK was sent, or the connection is gone
    std::string failed_with_;        ///< SQLSTATE of the first statement that failed
    std::optional<Result> refused_;  ///< the claim's row when it did not start the key
};

}  // namespace idempotency
