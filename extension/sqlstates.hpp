// The SQLSTATEs of class IK as the server's error codes.
// Used wherever the extension raises one.
#pragma once

#include "core/sqlstate.hpp"
#include "pg/server.hpp"

namespace idempotency::sqlstates {

constexpr int encode(std::string_view sqlstate) {
    return MAKE_SQLSTATE(sqlstate[0], sqlstate[1], sqlstate[2], sqlstate[3], sqlstate[4]);
}

inline constexpr int request_in_progress = encode(sqlstate::request_in_progress);
inline constexpr int key_left_in_progress = encode(sqlstate::key_left_in_progress);
inline constexpr int key_not_in_progress = encode(sqlstate::key_not_in_progress);
inline constexpr int status_not_final = encode(sqlstate::status_not_final);
inline constexpr int table_not_expected = encode(sqlstate::table_not_expected);
inline constexpr int key_expired = encode(sqlstate::key_expired);
inline constexpr int key_from_the_future = encode(sqlstate::key_from_the_future);

}  // namespace idempotency::sqlstates
