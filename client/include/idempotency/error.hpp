// The one root of every exception that the shim throws.
// Callers catch Error and ask it what to do; the unit of work does the same.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace idempotency {

/// An error of the database, of the connection to it or of the shim itself.
///
/// sqlstate() is the server's five characters whole; for a connection that could not be made, was lost or did not come in
/// time it is of class 08. detail(), hint() and table(), the one whose constraint is violated, are the server's, empty when it sent none.
class Error : public std::runtime_error {
public:
    /// @param sqlstate five characters
    /// @param message  what() of the exception
    /// @param detail   facts, may be empty
    /// @param hint     what to do, may be empty
    /// @param table    whose constraint is violated, may be empty
    Error(std::string sqlstate, const std::string& message, std::string detail = {}, std::string hint = {},
          std::string table = {});

    /// Five characters, for example 40001.
    [[nodiscard]] const std::string& sqlstate() const noexcept { return sqlstate_; }
    /// The facts that the server adds.
    [[nodiscard]] const std::string& detail() const noexcept { return detail_; }
    /// What to do, as the server says it.
    [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
    /// The table whose constraint is violated.
    [[nodiscard]] const std::string& table() const noexcept { return table_; }

    /// A new attempt of the whole transaction may succeed: 40001, 40P01, 55P03, or a connection that was lost.
    [[nodiscard]] virtual bool retryable() const noexcept;

    /// Whether a server error with this SQLSTATE is worth a new attempt.
    [[nodiscard]] static bool is_retryable(std::string_view sqlstate) noexcept;

    /// COMMIT was sent and its answer never came: the transaction may have committed. Begin again with the same key to learn it.
    [[nodiscard]] virtual bool in_doubt() const noexcept { return false; }

private:
    std::string sqlstate_;
    std::string detail_;
    std::string hint_;
    std::string table_;
};

/// The connection was lost: in_doubt() when COMMIT had been sent, else retryable().
class ConnectionLost : public Error {
public:
    /// @param message  libpq's
    /// @param in_doubt COMMIT had been sent
    ConnectionLost(const std::string& message, bool in_doubt);
    [[nodiscard]] bool retryable() const noexcept override;
    [[nodiscard]] bool in_doubt() const noexcept override { return in_doubt_; }

private:
    bool in_doubt_;
};

/// A deferred operation's key was not started: it is replayed, reused or in progress. Thrown by the handler's first statement, which has not
/// happened; the stage answers in the handler's place, whatever the handler does.
class KeyNotStarted : public Error {
public:
    /// Made by the transaction.
    KeyNotStarted();
};

/// A prepared statement no longer fits: its table was changed, or a pooler does not know it. The next attempt prepares anew.
class StaleStatement : public Error {
public:
    /// The server's error, 0A000 or 26000, whole.
    explicit StaleStatement(const Error& from_server) : Error(from_server) {}

    [[nodiscard]] bool retryable() const noexcept override { return true; }
};

/// No connection could be had in time: the server refuses them, or all of a pool's are in use.
class Unavailable : public Error {
public:
    /// @param message why there is none
    explicit Unavailable(const std::string& message);
    [[nodiscard]] bool retryable() const noexcept override { return false; }
};

}  // namespace idempotency
