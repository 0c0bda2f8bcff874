// Numbers in canonical JSON: the ECMAScript text of an IEEE 754 double (RFC 8785 section 3.2.2.3).
// Called by the parser of canonical JSON for numbers whose text is not canonical at sight.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

#include "core/canonical_json.hpp"

namespace idempotency::canonical_number {

/// Decimals of up to 15 significant digits survive the way through a double and back, so their digits are the shortest ones already.
inline constexpr std::ptrdiff_t safe_digits = std::numeric_limits<double>::digits10;

/// The longest text of a double: -0.00000 and 17 digits, or a sign, 17 digits, a point and e-324.
inline constexpr std::size_t max_size = 25;

/// Writes the canonical text of a number.
/// @param text  a number by the grammar of RFC 8259 section 6
/// @param exact refuse -0 and a number whose canonical text has another value
/// @param out   max_size writable bytes; moved behind the text
/// @return none, number_out_of_range, or number_not_exact
[[nodiscard]] CanonicalJsonError write(std::string_view text, bool exact, char*& out) noexcept;

}  // namespace idempotency::canonical_number
