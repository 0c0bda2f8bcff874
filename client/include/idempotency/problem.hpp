// Problem documents (RFC 9457): the body of every error answer.
// Written by the stage; handlers use it for their own errors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "idempotency/http.hpp"

namespace idempotency {

/// One thing wrong with a request, inside a problem's "errors".
struct ProblemError {
    std::string pointer;  ///< where: "#/quantity" in the body, "#header/Idempotency-Key"
    std::string code;     ///< machine-readable, e.g. "invalid_format"
    std::string detail;   ///< a sentence for a person
};

/// An error answer. `code` is what programs test; `title` and `detail` are for people.
struct Problem {
    int status = 500;                  ///< HTTP status
    std::string code;                  ///< e.g. "idempotency_key_reuse"
    std::string title;                 ///< short, the same for every problem of this code
    std::string detail;                ///< this occurrence, and what to do
    std::vector<ProblemError> errors;  ///< what is wrong with the request, one by one; may be empty
    std::vector<std::pair<std::string, std::string>> members;  ///< further string members, e.g. reason, hint

    /// The answer: application/problem+json with type about:blank, title, status, detail, code, correlation_id.
    [[nodiscard]] http::Response to_response(const std::string& correlation_id) const;
};

}  // namespace idempotency
