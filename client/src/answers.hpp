// The answers that the stage itself gives: problems, and replays of stored answers.
// Used by the stage.
#pragma once

#include <optional>
#include <string>

#include "idempotency/error.hpp"
#include "idempotency/http.hpp"
#include "idempotency/problem.hpp"
#include "idempotency/stage.hpp"
#include "idempotency/store.hpp"

namespace idempotency::answers {

[[nodiscard]] Problem invalid_key();
[[nodiscard]] Problem missing_key();
[[nodiscard]] Problem key_expired();
[[nodiscard]] Problem key_from_the_future();
[[nodiscard]] Problem body_too_large(std::size_t limit);
[[nodiscard]] Problem key_reuse();
[[nodiscard]] Problem request_in_progress();
[[nodiscard]] Problem unknown_principal();
[[nodiscard]] Problem internal_error();
[[nodiscard]] Problem service_unavailable();

/// What the client is told of a database error: the table of docs/errors.md, in one place.
[[nodiscard]] Problem of_database_error(const Error& error);

/// The problem as an answer, with Retry-After where waiting helps.
[[nodiscard]] http::Response to_response(const Problem& problem, const std::string& correlation_id);

/// The code of a problem document; nothing when the response is not one.
[[nodiscard]] std::optional<std::string> problem_code(const http::Response& response);

/// Sets the headers that follow from status and body, so that first answer and replay have the same: Content-Type, and ETag from the
/// body's version for the statuses that declare it, Location of a 201 for operations that have a template.
void set_derived_headers(http::Response& response, const Operation& operation, const std::optional<Uuid>& resource_id);

/// What is stored of an answer.
/// @return nothing when the body is not JSON
[[nodiscard]] std::optional<Answer> to_store(const http::Response& response);

/// The answer that a finishing statement gave, as stored.
[[nodiscard]] http::Response from_answer(const Answer& answer);

/// The answer in the row (status, body, ...) of a finishing statement that stores nothing.
[[nodiscard]] http::Response from_row(const Result& row);

/// What is stored in place of an answer that carries a one-time secret.
inline constexpr const char* one_time_secret_body = R"({"one_time_secret": true})";

/// A stored answer given again (the seed's "Replay").
[[nodiscard]] http::Response replay(const Answer& answer, const Operation& operation,
                                    const std::string& correlation_id);

/// Whether this is what is stored in place of a secret.
[[nodiscard]] bool is_one_time_secret(const Answer& answer);

}  // namespace idempotency::answers
