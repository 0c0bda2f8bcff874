// Numbers in canonical JSON: the ECMAScript text of an IEEE 754 double (RFC 8785 section 3.2.2.3).
// Called by canonical_json.cpp for every number of a document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace idempotency::canonical_number {

enum class Range : std::uint8_t { in_range, beyond_double, not_exact };

/// Whether a double holds the number. With `exact`, its decimal value must survive the way through a double and back, and -0 does not.
/// @param text a number by the grammar of RFC 8259 section 6
[[nodiscard]] Range range_of(std::string_view text, bool exact) noexcept;

/// Appends the canonical text of a number that is in range.
void append(std::string_view text, std::string& output);

}  // namespace idempotency::canonical_number
