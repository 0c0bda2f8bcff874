// Exceptions, and the one place that says which SQLSTATEs are worth a new attempt.
// Thrown by everything that talks to the database.
#include "idempotency/error.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/sqlstate.hpp"

namespace idempotency {
namespace {

/// serialization_failure, deadlock_detected, lock_not_available.
constexpr std::array<std::string_view, 3> retryable_sqlstates{"40001", "40P01", "55P03"};

constexpr const char* connection_failure = "08006";
constexpr const char* cannot_connect = "08001";

}  // namespace

Error::Error(std::string sqlstate, const std::string& message, std::string detail, std::string hint, std::string table)
    : std::runtime_error(message),
      sqlstate_(std::move(sqlstate)),
      detail_(std::move(detail)),
      hint_(std::move(hint)),
      table_(std::move(table)) {}

bool Error::retryable() const noexcept { return is_retryable(sqlstate_); }

bool Error::is_retryable(std::string_view sqlstate) noexcept {
    return std::ranges::find(retryable_sqlstates, sqlstate) != retryable_sqlstates.end();
}

ConnectionLost::ConnectionLost(const std::string& message, bool in_doubt)
    : Error(connection_failure, message), in_doubt_(in_doubt) {}

bool ConnectionLost::retryable() const noexcept { return !in_doubt_; }

KeyNotStarted::KeyNotStarted()
    : Error(std::string(sqlstate::key_not_in_progress), "this transaction did not start the key") {}

Unavailable::Unavailable(const std::string& message) : Error(cannot_connect, message) {}

}  // namespace idempotency
