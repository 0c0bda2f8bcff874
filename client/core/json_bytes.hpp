// The bytes of JSON text: runs of plain string characters, white space, UTF-8 sequences; sixteen bytes at a time.
// Used by the parser and the writer of canonical JSON only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace idempotency::json_bytes {

inline constexpr std::size_t block_size = 16;

/// What every buffer has beyond its text, so that whole blocks and the longest number can be written without a check.
inline constexpr std::size_t slack = 64;

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_white_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

#if defined(__SSE2__)

using Block = signed char __attribute__((vector_size(block_size)));

[[nodiscard]] inline Block load(const char* in) noexcept {
    Block block;
    std::memcpy(&block, in, sizeof block);
    return block;
}

/// How many bytes from the front are not marked in `marked`; marked bytes have all their bits set.
[[nodiscard]] inline std::size_t before_first(Block marked) noexcept {
    using Chars = char __attribute__((vector_size(block_size)));
    const auto mask = static_cast<unsigned>(__builtin_ia32_pmovmskb128(reinterpret_cast<Chars>(marked)));
    return static_cast<std::size_t>(std::countr_zero(mask | 1U << block_size));
}

/// Copies a block and counts its leading plain characters: ASCII, no quote, no backslash, no control character.
/// @param in  block_size readable bytes
/// @param out block_size writable bytes
[[nodiscard]] inline std::size_t copy_plain(const char* in, char* out) noexcept {
    const Block block = load(in);
    std::memcpy(out, &block, sizeof block);
    // Bytes are signed here, so that those beyond ASCII are below the space, too.
    return before_first(reinterpret_cast<Block>(block == '"') | reinterpret_cast<Block>(block == '\\') |
                        reinterpret_cast<Block>(block < 0x20));
}

/// Counts the white space at the front of block_size readable bytes.
[[nodiscard]] inline std::size_t count_white_space(const char* in) noexcept {
    const Block block = load(in);
    return before_first(~(reinterpret_cast<Block>(block == ' ') | reinterpret_cast<Block>(block == '\n') |
                          reinterpret_cast<Block>(block == '\r') | reinterpret_cast<Block>(block == '\t')));
}

#else

[[nodiscard]] inline std::size_t copy_plain(const char* in, char* out) noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101;
    constexpr std::uint64_t highs = 0x8080808080808080;
    std::memcpy(out, in, block_size);
    for (std::size_t i = 0; i < block_size; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, in + i, sizeof word);
        const std::uint64_t quote = word ^ ones * '"';
        const std::uint64_t backslash = word ^ ones * '\\';
        // A subtraction borrows into the high bit of a byte that is too small. It may also mark plain bytes after a marked one.
        if ((((quote - ones) | (backslash - ones) | (word - ones * 0x20) | word) & highs) != 0) {
            const auto is_plain = [](char c) {
                return c >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\';
            };
            while (is_plain(in[i])) {
                ++i;
            }
            return i;
        }
    }
    return block_size;
}

[[nodiscard]] inline std::size_t count_white_space(const char* in) noexcept {
    std::size_t count = 0;
    while (count < block_size && is_white_space(in[count])) {
        ++count;
    }
    return count;
}

#endif

/// The first byte from `in` on that is not white space (RFC 8259 section 2), or `end`.
[[nodiscard]] inline const char* skip_white_space(const char* in, const char* end) noexcept {
    // Compact documents have none, others mostly one space.
    if (in == end || static_cast<unsigned char>(*in) > ' ') {
        return in;
    }
    if (*in == ' ' && end - in > 1 && static_cast<unsigned char>(in[1]) > ' ') {
        return in + 1;
    }
    while (end - in >= static_cast<std::ptrdiff_t>(block_size)) {
        const std::size_t count = count_white_space(in);
        in += count;
        if (count < block_size) {
            return in;
        }
    }
    while (in != end && is_white_space(*in)) {
        ++in;
    }
    return in;
}

/// The size of the UTF-8 sequence at `in`, which begins beyond ASCII: 2 to 4, or 0 when it is not one (RFC 3629 section 4: no
/// overlong form, no surrogate, nothing beyond U+10FFFF).
[[nodiscard]] inline std::size_t utf8_sequence(const char* in, const char* end) noexcept {
    const auto byte = [in](std::size_t i) { return static_cast<unsigned char>(in[i]); };
    const auto continues = [&byte](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
    const std::ptrdiff_t available = end - in;
    const unsigned char lead = byte(0);
    if (lead < 0xC2 || available < 2 || !continues(1)) {
        return 0;
    }
    if (lead < 0xE0) {
        return 2;
    }
    const unsigned char second = byte(1);
    if (lead < 0xF0) {
        const bool valid = (lead != 0xE0 || second >= 0xA0) && (lead != 0xED || second < 0xA0);
        return valid && available >= 3 && continues(2) ? 3 : 0;
    }
    const bool valid = lead <= 0xF4 && (lead != 0xF0 || second >= 0x90) && (lead != 0xF4 || second < 0x90);
    return valid && available >= 4 && continues(2) && continues(3) ? 4 : 0;
}

/// Writes a code point as UTF-8.
/// @return one past the last byte written, at most 4
[[nodiscard]] inline char* write_utf8(std::uint32_t code_point, char* out) noexcept {
    const auto put = [&out](std::uint32_t byte) { *out++ = static_cast<char>(byte); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0 | code_point >> 6);
        put(0x80 | (code_point & 0x3F));
    } else {
        if (code_point < 0x10000) {
            put(0xE0 | code_point >> 12);
        } else {
            put(0xF0 | code_point >> 18);
            put(0x80 | (code_point >> 12 & 0x3F));
        }
        put(0x80 | (code_point >> 6 & 0x3F));
        put(0x80 | (code_point & 0x3F));
    }
    return out;
}

/// Copies `size` bytes in whole blocks: up to block_size bytes beyond them are read and written, too.
[[nodiscard]] inline char* copy_blocks(const char* in, std::size_t size, char* out) noexcept {
    if (size > 8 * block_size) {
        std::memcpy(out, in, size);
        return out + size;
    }
    for (std::size_t i = 0; i < size; i += block_size) {
        std::memcpy(out + i, in + i, block_size);
    }
    return out + size;
}

}  // namespace idempotency::json_bytes
