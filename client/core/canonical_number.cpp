// Numbers in canonical JSON: decimal text to the shortest text of its double, laid out as ECMAScript does.
// Called by canonical_json_parser.cpp.
#include "core/canonical_number.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "core/json_bytes.hpp"

namespace idempotency::canonical_number {
namespace {

using json_bytes::is_digit;

/// Where decimals of safe_digits are safe: far from the subnormal numbers and from the largest double.
constexpr std::int64_t safe_point = 290;
/// Beyond these every number is infinite, or zero.
constexpr std::int64_t overflow_point = 310;
constexpr std::int64_t underflow_point = -330;
/// Exponents end here, far beyond what the digits of a document can make up for.
constexpr std::int64_t exponent_limit = std::int64_t{1} << 60;
/// The digits that can decide how a decimal is rounded to a double: 767 make up the longest number half way between two.
constexpr std::size_t deciding_digits = 768;

/// A decimal number as 0.DIGITS times ten to the power of `point`. Digits have no zero at either end; none at all for zero.
struct Decimal {  // NOLINT(cppcoreguidelines-pro-type-member-init): the digits are not, for speed
    std::int64_t point = 0;
    std::size_t count = 0;
    bool negative = false;
    bool cut = false;                  ///< there were more digits than are kept, not all zero
    char digits[deciding_digits + 1];  // uninitialised: only the first `count` are used
};

std::int64_t read_exponent(std::string_view text) noexcept {
    const bool negative = text.front() == '-';
    std::int64_t value = 0;
    for (const char c : text) {
        if (is_digit(c) && value < exponent_limit / 16) {
            value = value * 10 + (c - '0');
        }
    }
    return negative ? -value : value;
}

void read(std::string_view text, Decimal& decimal) noexcept {
    decimal.negative = text.front() == '-';
    const char* in = text.data() + (decimal.negative ? 1 : 0);
    const char* const end = text.data() + text.size();
    bool after_point = false;
    std::size_t kept = 0;  // zeros at the end included
    for (; in != end && *in != 'e' && *in != 'E'; ++in) {
        if (*in == '.') {
            after_point = true;
            continue;
        }
        const bool leading = *in == '0' && kept == 0;
        decimal.point += (after_point ? 0 : 1) - (leading ? 1 : 0);
        if (leading) {
            continue;
        }
        if (kept < deciding_digits) {
            decimal.digits[kept++] = *in;
            decimal.count = *in != '0' ? kept : decimal.count;
        } else {
            decimal.cut = decimal.cut || *in != '0';
        }
    }
    if (in != end) {
        decimal.point += read_exponent({in + 1, static_cast<std::size_t>(end - in - 1)});
    }
}

/// The shortest digits of the double nearest to `decimal`; no digits when that is zero.
/// @return false when it is infinite
bool to_shortest(const Decimal& decimal, Decimal& shortest) noexcept {
    shortest.negative = decimal.negative;
    // Written anew within bounds: readers differ on very long digits and exponents.
    char text[deciding_digits + 32];
    char* out = text;
    *out++ = decimal.digits[0];
    *out++ = '.';
    std::memcpy(out, decimal.digits + 1, decimal.count - 1);
    out += decimal.count - 1;
    if (decimal.cut) {
        std::memset(out, '0', deciding_digits - decimal.count);
        out += deciding_digits - decimal.count;
        *out++ = '1';
    }
    *out++ = 'e';
    out = std::to_chars(out, text + sizeof text, decimal.point - 1).ptr;
    double value = 0;
    if (std::from_chars(text, out, value).ec == std::errc::result_out_of_range) {
        return decimal.point <= 0;  // out of range below: zero
    }
    if (value == 0) {
        return true;
    }
    const char* const end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
    read({text, static_cast<std::size_t>(end - text)}, shortest);
    shortest.negative = decimal.negative;
    return true;
}

bool same_value(const Decimal& a, const Decimal& b) noexcept {
    return a.count == b.count && a.point == b.point && !a.cut && std::memcmp(a.digits, b.digits, a.count) == 0;
}

/// Number::toString of ECMAScript: where the point goes, and when an exponent is written.
char* lay_out(const Decimal& decimal, char* out) noexcept {
    const auto copy = [&out, &decimal](std::size_t begin, std::size_t end) {
        std::memcpy(out, decimal.digits + begin, end - begin);
        out += end - begin;
    };
    const auto zeros = [&out](std::int64_t count) {
        std::memset(out, '0', static_cast<std::size_t>(count));
        out += count;
    };
    if (decimal.count == 0) {
        *out++ = '0';
        return out;
    }
    if (decimal.negative) {
        *out++ = '-';
    }
    const auto count = static_cast<std::int64_t>(decimal.count);
    const std::int64_t point = decimal.point;
    if (count <= point && point <= 21) {
        copy(0, decimal.count);
        zeros(point - count);
    } else if (0 < point && point <= 21) {
        copy(0, static_cast<std::size_t>(point));
        *out++ = '.';
        copy(static_cast<std::size_t>(point), decimal.count);
    } else if (-6 < point && point <= 0) {
        *out++ = '0';
        *out++ = '.';
        zeros(-point);
        copy(0, decimal.count);
    } else {
        copy(0, 1);
        if (count > 1) {
            *out++ = '.';
            copy(1, decimal.count);
        }
        *out++ = 'e';
        if (point > 0) {
            *out++ = '+';
        }
        out = std::to_chars(out, out + 8, point - 1).ptr;
    }
    return out;
}

}  // namespace

CanonicalJsonError write(std::string_view text, bool exact, char*& out) noexcept {
    Decimal given;
    read(text, given);
    if (given.count == 0) {
        *out++ = '0';
        return exact && given.negative ? CanonicalJsonError::number_not_exact : CanonicalJsonError::none;
    }
    const bool is_shortest = given.count <= static_cast<std::size_t>(safe_digits) && !given.cut;
    if (is_shortest && given.point > -safe_point && given.point < safe_point) {
        out = lay_out(given, out);
        return CanonicalJsonError::none;
    }
    Decimal shortest;
    if (given.point > overflow_point || (given.point > underflow_point && !to_shortest(given, shortest))) {
        return CanonicalJsonError::number_out_of_range;
    }
    if (exact && !same_value(given, shortest)) {
        return CanonicalJsonError::number_not_exact;
    }
    out = lay_out(shortest, out);
    return CanonicalJsonError::none;
}

}  // namespace idempotency::canonical_number
