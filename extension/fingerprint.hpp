// The fingerprint of a request, computed in the server.
// Used by claim for idempotency_begin_request.
#pragma once

#include "pg/arguments.hpp"

namespace idempotency {

/// The fingerprint over three arguments in a row: method text, path text, body bytea (NULL: no body).
/// @return bytea of 32 bytes, in the entry memory
/// @throws pg::ServerError 22004 for a NULL method or path, 22023 for an empty method or a path that is not an absolute one without query
[[nodiscard]] Datum fingerprint_of(const pg::Arguments& arguments, int first_index);

}  // namespace idempotency
