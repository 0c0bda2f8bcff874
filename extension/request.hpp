// The arguments that begin, begin_request and save_final share: a key, its action, its fingerprint and its life.
// Used by claim and answer.
#pragma once

#include "pg/arguments.hpp"
#include "store.hpp"

namespace idempotency {

/// The arguments principal_id, key, action and request_sha256, the first four of begin and save_final.
/// @throws pg::ServerError 22004 for a NULL, 22023 for an empty action or a fingerprint that is not 32 bytes
[[nodiscard]] NewKey key_arguments(const pg::Arguments& arguments);

/// A text argument that says something.
/// @throws pg::ServerError 22004 for NULL, 22023 for an empty text
[[nodiscard]] Datum action_argument(const pg::Arguments& arguments, int index);

/// Sets created_at and expires_at of a new key from the arguments ttl (default: idempotency.key_ttl) and at (default: the clock).
/// @throws pg::ServerError 22023 for a ttl that is not positive or a time that is not finite
void set_life(NewKey& key, const pg::Arguments& arguments, int ttl_index, int at_index);

}  // namespace idempotency
