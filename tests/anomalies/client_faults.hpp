// Makes the N-th call of a kind fail that the client library makes, or libpq and OpenSSL for it.
// Used by client_test.cpp, which is linked with -Wl,--wrap for each __wrap_X of client_faults.cpp.
#pragma once

#include <array>
#include <string_view>

namespace faults {

enum class Kind {
    none,
    operator_new,      ///< throws std::bad_alloc
    libpq_malloc,      ///< malloc, calloc or realloc gives libpq no memory, but for an empty result
    libcrypto_malloc,  ///< ... or OpenSSL
    libpq_call,        ///< a function of libpq returns its code of failure instead of doing its work
    libpq_result,      ///< PQgetResult gives an error of libpq itself, without SQLSTATE, in place of what came
    connect_refused,   ///< ECONNREFUSED
    poll_interrupted,  ///< EINTR
    send_refused,      ///< EPIPE; nothing left, and the connection is gone
    send_lost,         ///< ECONNRESET; all of it arrives, and the connection is gone
    send_short,        ///< only half of it is taken
    recv_reset,        ///< ECONNRESET; what came is lost with the connection
    recv_end,          ///< end of file, likewise
    recv_short         ///< one byte only
};

struct Name {
    Kind kind;
    std::string_view text;
};
inline constexpr std::array names{Name{Kind::operator_new, "operator_new"},
                                  Name{Kind::libpq_malloc, "libpq_malloc"},
                                  Name{Kind::libcrypto_malloc, "libcrypto_malloc"},
                                  Name{Kind::libpq_call, "libpq_call"},
                                  Name{Kind::libpq_result, "libpq_result"},
                                  Name{Kind::connect_refused, "connect_refused"},
                                  Name{Kind::poll_interrupted, "poll_interrupted"},
                                  Name{Kind::send_refused, "send_refused"},
                                  Name{Kind::send_lost, "send_lost"},
                                  Name{Kind::send_short, "send_short"},
                                  Name{Kind::recv_reset, "recv_reset"},
                                  Name{Kind::recv_end, "recv_end"},
                                  Name{Kind::recv_short, "recv_short"}};

/// From now on the n-th call of this kind fails.
void arm(Kind kind, int n) noexcept;

/// From now on nothing fails.
/// @return whether a call did
bool disarm() noexcept;

/// Objects of C++ and results of libpq that live.
[[nodiscard]] int living_objects() noexcept;
[[nodiscard]] int living_results() noexcept;

}  // namespace faults
