// Numbers in canonical JSON: decimal text to the shortest text of its double, laid out as ECMAScript does.
// Called by canonical_json.cpp.
#include "core/canonical_number.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

namespace idempotency::canonical_number {
namespace {

/// Decimals of up to 15 significant digits survive the way through a double and back, so their digits are the shortest ones already.
constexpr std::size_t safe_digits = std::numeric_limits<double>::digits10;
/// Where that holds: far from the subnormal numbers and from the largest double.
constexpr long safe_exponent = 290;
/// Exponents are clamped here; a double ends long before.
constexpr long exponent_limit = 1'000'000'000;

/// A decimal number as 0.DIGITS times ten to the power of `point`. Digits have no zero at either end; none at all for zero.
struct Decimal {
    bool negative = false;
    char digits[safe_digits + 5];  ///< the first ones only when there are more than fit
    std::size_t count = 0;         ///< significant digits, also those that did not fit
    long point = 0;

    [[nodiscard]] bool is_zero() const noexcept { return count == 0; }
    [[nodiscard]] bool is_shortest() const noexcept {
        return count <= safe_digits && point > -safe_exponent && point < safe_exponent;
    }
};

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

long read_exponent(std::string_view text) noexcept {
    const bool negative = !text.empty() && text.front() == '-';
    long value = 0;
    for (const char c : text) {
        if (is_digit(c)) {
            value = std::min(value * 10 + (c - '0'), exponent_limit);
        }
    }
    return negative ? -value : value;
}

Decimal read(std::string_view text) noexcept {
    Decimal decimal;
    decimal.negative = text.front() == '-';
    std::size_t i = decimal.negative ? 1 : 0;
    long integer_digits = 0;      // significant digits before the point, or minus the zeros after it
    std::size_t trailing_zeros = 0;  // zeros seen since the last digit that is not one
    bool after_point = false;
    for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
        const char c = text[i];
        if (c == '.') {
            after_point = true;
            continue;
        }
        const bool leading = decimal.count + trailing_zeros == 0 && c == '0';
        if (leading) {
            integer_digits -= after_point ? 1 : 0;
            continue;
        }
        integer_digits += after_point ? 0 : 1;
        if (c == '0') {
            ++trailing_zeros;
            continue;
        }
        for (; trailing_zeros > 0; --trailing_zeros, ++decimal.count) {
            if (decimal.count < sizeof decimal.digits) {
                decimal.digits[decimal.count] = '0';
            }
        }
        if (decimal.count < sizeof decimal.digits) {
            decimal.digits[decimal.count] = c;
        }
        ++decimal.count;
    }
    const long exponent = i < text.size() ? read_exponent(text.substr(i + 1)) : 0;
    decimal.point = integer_digits + exponent;
    return decimal;
}

/// The shortest digits of the double nearest to `text`. Zero when it underflows.
/// @return false when it overflows
bool read_shortest(std::string_view text, const Decimal& given, Decimal& shortest) noexcept {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
        shortest = Decimal{};
        return given.point <= 0;  // below the smallest double: zero
    }
    char buffer[32];
    const auto written = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    shortest = read({buffer, static_cast<std::size_t>(written.ptr - buffer)});
    return true;
}

bool same_value(const Decimal& a, const Decimal& b) noexcept {
    return a.count == b.count && a.point == b.point && a.negative == b.negative && a.count <= sizeof a.digits &&
           std::equal(a.digits, a.digits + a.count, b.digits);
}

/// Number::toString of ECMAScript: where the point goes, and when an exponent is written.
void lay_out(const Decimal& decimal, std::string& output) {
    if (decimal.is_zero()) {
        output += '0';
        return;
    }
    if (decimal.negative) {
        output += '-';
    }
    const auto count = static_cast<long>(decimal.count);
    const std::string_view digits(decimal.digits, decimal.count);
    const long point = decimal.point;
    if (count <= point && point <= 21) {
        output += digits;
        output.append(static_cast<std::size_t>(point - count), '0');
    } else if (0 < point && point <= 21) {
        output += digits.substr(0, static_cast<std::size_t>(point));
        output += '.';
        output += digits.substr(static_cast<std::size_t>(point));
    } else if (-6 < point && point <= 0) {
        output += "0.";
        output.append(static_cast<std::size_t>(-point), '0');
        output += digits;
    } else {
        output += digits[0];
        if (count > 1) {
            output += '.';
            output += digits.substr(1);
        }
        output += 'e';
        output += point > 0 ? '+' : '-';
        char exponent[8];
        const long magnitude = point > 0 ? point - 1 : 1 - point;
        const auto written = std::to_chars(exponent, exponent + sizeof exponent, magnitude);
        output.append(exponent, static_cast<std::size_t>(written.ptr - exponent));
    }
}

}  // namespace

Range range_of(std::string_view text, bool exact) noexcept {
    const Decimal given = read(text);
    if (given.is_zero()) {
        return exact && given.negative ? Range::not_exact : Range::in_range;
    }
    if (given.is_shortest()) {
        return Range::in_range;
    }
    const bool surely_in_range = given.point > -safe_exponent && given.point < safe_exponent;
    if (!exact && surely_in_range) {
        return Range::in_range;
    }
    Decimal shortest;
    if (!read_shortest(text, given, shortest)) {
        return Range::beyond_double;
    }
    return exact && !same_value(given, shortest) ? Range::not_exact : Range::in_range;
}

void append(std::string_view text, std::string& output) {
    const Decimal given = read(text);
    if (given.is_zero() || given.is_shortest()) {
        lay_out(given, output);
        return;
    }
    Decimal shortest;
    if (read_shortest(text, given, shortest)) {
        lay_out(shortest, output);
    }
}

}  // namespace idempotency::canonical_number
