// The deterministic sequence of doubles that the author of RFC 8785 published to test number texts with.
// Used by the tests of canonical numbers.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace idempotency::tests {

/// Thirds of powers of ten, downwards: their digits do not end.
inline constexpr double thirds[] = {
    3.3333333333333335e+21, 3.333333333333333e+20,  3.3333333333333336e+19, 3.333333333333334e+18,
    3.333333333333334e+17,  3.333333333333334e+16,  3333333333333334.0,     333333333333333.4,
    33333333333333.344,     3333333333333.334,      333333333333.33344,     33333333333.33334,
    3333333333.333334,      333333333.3333334,      33333333.333333336,     3333333.3333333335,
    333333.3333333333,      33333.333333333336,     3333.333333333333,      333.3333333333333,
    33.333333333333336,     3.3333333333333335,     0.3333333333333333,     0.03333333333333333,
    0.0033333333333333335,  0.0003333333333333333,  3.3333333333333335e-05, 3.3333333333333333e-06,
    3.3333333333333335e-07, 3.3333333333333334e-08, 3.3333333333333334e-09, 3.333333333333333e-10,
    3.3333333333333335e-11, 3.333333333333333e-12,  3.3333333333333334e-13, 3.3333333333333334e-14,
    3.3333333333333332e-15, 3.333333333333333e-16,  3.3333333333333335e-17, 3.3333333333333333e-18,
    3.3333333333333334e-19, 3.333333333333333e-20,  3.3333333333333333e-21, 3.333333333333333e-22,
    3.3333333333333333e-23, 3.3333333333333334e-24, 3.3333333333333335e-25, 3.333333333333333e-26,
    3.333333333333333e-27,  3.3333333333333338e-28,
};

/// Powers of ten and their halves, neighbours of such, and both ends of the range.
inline constexpr double edges[] = {
    10.0,
    5.0,
    0.5,
    0.05,
    0.005,
    0.0005,
    5e-05,
    5e-06,
    5e-07,
    5e-08,
    5e-09,
    5.06e-06,
    5.006e-06,
    5.0006e-06,
    5.00006e-06,
    5.000006e-06,
    5.0000006e-06,
    5.00000006e-06,
    5.000000006e-06,
    5.0000000006e-06,
    5.00000000006e-06,
    5.000000000006e-06,
    5.0000000000006e-06,
    5.00000000000006e-06,
    5.000000000000006e-06,
    5e-06,
    1.0,
    -1.0,
    -0.9999999999999993,
    -0.9999999999999994,
    0.9999999999999993,
    0.9999999999999994,
    0.9999999999999996,
    0.9999999999999998,
    -0.9999999999999999,
    -0.9999999999999999,
    0.9999999999999999,
    0.9999999999999999,
    0.29999999999999993,
    0.3,
    0.30000000000000004,
    2.2250738585072014e-308,
    2.2250738585072e-308,
    2.225073858507201e-308,
    1.7976931348623157e+308,
    -1.7976931348623157e+308,
    9007199254740992.0,
    -9007199254740992.0,
    2.9514790517935283e+20,
    9.999999999999997e+22,
    1e+23,
    1.0000000000000001e+23,
    9.999999999999997e+20,
    9.999999999999999e+20,
    1e+21,
    9.999999999999997e-07,
    1e-06,
    333333333.3333332,
    333333333.33333325,
    333333333.3333333,
    333333333.3333334,
    333333333.33333343,
    -3.3333333333333333e-06,
    1424953923781206.2,
};

/// Zeros and the smallest doubles, thirds of either sign, edges, the 2,000 doubles from the smallest normal one on, then
/// without end what a chain of SHA-256 values spells, four doubles each.
class EcmaScriptNumbers {
public:
    double next() {
        constexpr double first[] = {0.0, -0.0, 5e-324, -5e-324};
        constexpr std::size_t serial = 2000;
        std::size_t i = index_++;
        if (i < std::size(first)) {
            return first[i];
        }
        i -= std::size(first);
        if (i < 2 * std::size(thirds)) {
            return i < std::size(thirds) ? -thirds[i] : thirds[i - std::size(thirds)];
        }
        i -= 2 * std::size(thirds);
        if (i < std::size(edges)) {
            return edges[i];
        }
        i -= std::size(edges);
        return i < serial ? std::bit_cast<double>(std::bit_cast<std::uint64_t>(std::numeric_limits<double>::min()) + i)
                          : chained();
    }

private:
    double chained() {
        for (;;) {
            if (used_ == block_.size()) {
                EVP_Digest(block_.data(), block_.size(), block_.data(), nullptr, EVP_sha256(), nullptr);
                used_ = 0;
            }
            std::uint64_t bits = 0;
            for (std::size_t i = 8; i > 0; --i) {
                bits = bits << 8 | block_[used_ + i - 1];
            }
            used_ += 8;
            const double value = std::bit_cast<double>(bits);
            if (value != 0 && std::isfinite(value)) {
                return value;
            }
        }
    }

    std::size_t index_ = 0;
    std::array<unsigned char, 32> block_{};
    std::size_t used_ = block_.size();
};

}  // namespace idempotency::tests
