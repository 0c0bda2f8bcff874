// The one table of the product's own SQLSTATEs, class IK; docs/errors.md lists them.
// Raised by the extension, mapped by the shim.
#pragma once

#include <string_view>

namespace idempotency::sqlstate {

/// The first request with this key is still running (answered 409 request_in_progress).
inline constexpr std::string_view request_in_progress = "IK001";
/// A transaction that started a key reached COMMIT without idempotency_complete.
inline constexpr std::string_view key_left_in_progress = "IK002";
/// idempotency_complete for a key that this transaction did not start.
inline constexpr std::string_view key_not_in_progress = "IK003";
/// A status that is not final for the function it was given to.
inline constexpr std::string_view status_not_final = "IK004";
/// The table idempotency_keys is missing, or is not the expected one.
inline constexpr std::string_view table_not_expected = "IK005";
/// With idempotency.clock_skew: a new key whose own time is older than its life (answered 422 idempotency_key_expired).
inline constexpr std::string_view key_expired = "IK006";
/// With idempotency.clock_skew: a new key whose own time is ahead of the clock (answered 400).
inline constexpr std::string_view key_from_the_future = "IK007";

}  // namespace idempotency::sqlstate
