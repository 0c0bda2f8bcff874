// UUID text in and out, and the Idempotency-Key value.
// Called by the extension, the shim and the C interface.
#include "core/uuid.hpp"

namespace idempotency {
namespace {

constexpr std::size_t text_size = 36;
constexpr bool is_hyphen_position(std::size_t i) noexcept { return i == 8 || i == 13 || i == 18 || i == 23; }

constexpr int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

/// Optional white space around a header value (RFC 9110 section 5.6.3).
constexpr std::string_view trimmed(std::string_view value) noexcept {
    constexpr std::string_view white_space = " \t";
    const std::size_t first = value.find_first_not_of(white_space);
    if (first == std::string_view::npos) {
        return {};
    }
    return value.substr(first, value.find_last_not_of(white_space) - first + 1);
}

}  // namespace

std::optional<Uuid> Uuid::parse(std::string_view text) noexcept {
    if (text.size() != text_size) {
        return std::nullopt;
    }
    Uuid uuid;
    std::size_t digits = 0;
    for (std::size_t i = 0; i < text_size; ++i) {
        if (is_hyphen_position(i)) {
            if (text[i] != '-') {
                return std::nullopt;
            }
            continue;
        }
        const int value = hex_value(text[i]);
        if (value < 0) {
            return std::nullopt;
        }
        std::uint8_t& byte = uuid.bytes[digits / 2];
        byte = static_cast<std::uint8_t>(digits % 2 == 0 ? value << 4 : byte | value);
        ++digits;
    }
    return uuid;
}

std::int64_t Uuid::unix_milliseconds() const noexcept {
    std::int64_t milliseconds = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        milliseconds = milliseconds << 8 | bytes[i];
    }
    return milliseconds;
}

std::string Uuid::to_string() const {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string text(text_size, '-');
    std::size_t at = 0;
    for (const std::uint8_t byte : bytes) {
        at += is_hyphen_position(at) ? 1 : 0;
        text[at++] = hex[byte >> 4];
        text[at++] = hex[byte & 0x0F];
    }
    return text;
}

std::optional<Uuid> parse_key(std::string_view value) noexcept {
    std::string_view text = trimmed(value);
    if (text.size() == text_size + 2 && text.front() == '"' && text.back() == '"') {
        text = text.substr(1, text_size);
    }
    const std::optional<Uuid> uuid = Uuid::parse(text);
    if (!uuid || uuid->version() != 7 || !uuid->is_rfc9562()) {
        return std::nullopt;
    }
    return uuid;
}

}  // namespace idempotency
