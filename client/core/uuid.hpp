// UUID value and the Idempotency-Key value (a UUIDv7, bare or quoted).
// Used by the extension (begin_request), the shim (stage) and the C interface.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace idempotency {

/// A UUID (RFC 9562) as its 16 bytes in network order.
struct Uuid {
    std::array<std::uint8_t, 16> bytes{};  ///< as they are sent, the most significant first

    /// Reads the text form `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, hexadecimal digits in any case.
    /// Braces, a `urn:uuid:` prefix, missing hyphens and surrounding white space are refused.
    /// @return the value, or nothing when `text` has another form. Never throws.
    [[nodiscard]] static std::optional<Uuid> parse(std::string_view text) noexcept;

    /// The text form in lower case, 36 characters (RFC 9562 section 4).
    [[nodiscard]] std::string to_string() const;

    /// The version field, 0 to 15; 7 for a time-ordered UUID (RFC 9562 section 5.7).
    [[nodiscard]] int version() const noexcept { return bytes[6] >> 4; }

    /// Milliseconds since 1970 in the first 48 bits; meaningful for version 7 (RFC 9562 section 5.7).
    [[nodiscard]] std::int64_t unix_milliseconds() const noexcept;

    /// The variant of RFC 9562 section 4.1 (binary 10), the only one with a version.
    [[nodiscard]] bool is_rfc9562() const noexcept { return (bytes[8] & 0xC0) == 0x80; }

    friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

/// Reads the value of an Idempotency-Key header: a UUIDv7, bare or as the quoted string of the IETF draft
/// (draft-ietf-httpapi-idempotency-key-header section 2.1), in any case, spaces and tabs around it allowed.
/// A list, parameters, another version or variant are refused.
/// @return the key, or nothing when `value` is not one. Never throws.
[[nodiscard]] std::optional<Uuid> parse_key(std::string_view value) noexcept;

}  // namespace idempotency
