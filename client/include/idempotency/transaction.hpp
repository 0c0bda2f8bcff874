// A database transaction as a handler sees it, and the statements it runs.
// Made by the unit of work and the stage; used by handlers and the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct pg_conn;    // libpq's PGconn
struct pg_result;  // libpq's PGresult

namespace idempotency {

/// A parameter in text form, or NULL. Made from strings, integers and UUIDs.
class Parameter {
public:
    Parameter(std::nullopt_t) {}
    Parameter(std::string text) : text_(std::move(text)) {}
    Parameter(std::string_view text) : text_(std::string(text)) {}
    Parameter(const char* text) : text_(std::string(text)) {}
    Parameter(std::int64_t number) : text_(std::to_string(number)) {}
    Parameter(int number) : text_(std::to_string(number)) {}
    Parameter(std::optional<std::string> text) : text_(std::move(text)) {}

    /// The text, or null for NULL.
    [[nodiscard]] const char* c_str() const noexcept { return text_ ? text_->c_str() : nullptr; }

private:
    std::optional<std::string> text_;
};

/// The rows of one statement, in text form.
class Result {
public:
    explicit Result(pg_result* owned) noexcept;  ///< takes over a libpq result

    [[nodiscard]] std::size_t rows() const noexcept;
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
class Transaction {
public:
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    /// Runs one statement and waits for its rows. Do not send BEGIN, COMMIT or ROLLBACK through it.
    /// @param sql        one statement with $1, $2, ...
    /// @param parameters as many as the statement names; their types are inferred by the server
    /// @throws Error with the server's SQLSTATE; the transaction is then failed, and every later statement throws too
    Result execute(std::string_view sql, const std::vector<Parameter>& parameters = {});

    /// The libpq connection inside this transaction, for an application's own libpq calls: out of pipeline mode, nothing in
    /// flight. Leave it the same way, and inside the transaction.
    [[nodiscard]] pg_conn* native_handle();

    class Access;  ///< for the shim only

protected:
    Transaction() = default;
    ~Transaction() = default;
};

}  // namespace idempotency
