// The strict JSON parser: grammar (RFC 8259), UTF-8 (RFC 3629) and the limits of I-JSON (RFC 7493) in one loop, which also writes.
// Called by canonical_json.cpp.
#include "core/canonical_json_parser.hpp"

#include <cstring>

#include "core/canonical_number.hpp"
#include "core/json_bytes.hpp"

namespace idempotency {

using Error = CanonicalJsonError;
using json_bytes::is_digit;
using json_bytes::skip_white_space;

CanonicalJson::Parser::Cursor CanonicalJson::Parser::fail(Error error, const char* in) noexcept {
    error_ = error;
    target_.error_offset_ = static_cast<std::size_t>(in - begin_);
    return {nullptr, nullptr};
}

bool CanonicalJson::Parser::ask(const char* in) noexcept {
    if (!check_.ask()) {
        fail(Error::cancelled, in);
        return false;
    }
    check_at_rest_ = end_ - in - static_cast<std::ptrdiff_t>(CancelCheck::interval);
    return true;
}

Error CanonicalJson::Parser::parse() {
    target_.open_.clear();
    target_.open_members_.clear();
    target_.objects_.clear();
    target_.ordered_members_.clear();
    const std::size_t room = static_cast<std::size_t>(end_ - begin_) + json_bytes::slack;
    if (target_.text_.size() < room) {
        target_.text_.clear();
        target_.text_.resize(room);
    }
    if (!ask(begin_)) {
        return error_;
    }
    Cursor at = value({begin_, target_.text_.data()});
    if (at.in == nullptr) {
        return error_;
    }
    at.in = skip_white_space(at.in, end_);
    if (at.in != end_) {
        fail(Error::not_json, at.in);
        return error_;
    }
    size_ = written(at);
    return Error::none;
}

/// One of true, false and null; their size is known when compiling.
template <std::size_t TextSize>
CanonicalJson::Parser::Cursor CanonicalJson::Parser::literal(Cursor at, const char (&text)[TextSize]) {
    constexpr std::size_t size = TextSize - 1;
    if (static_cast<std::size_t>(end_ - at.in) < size || std::memcmp(at.in, text, size) != 0) {
        return fail(Error::not_json, at.in);
    }
    std::memcpy(at.out, text, size);
    return {at.in + size, at.out + size};
}

/// A value with all that is in it. Every turn of the outer loop reads one value or the beginning of one.
// NOLINTNEXTLINE(readability-function-cognitive-complexity): one loop in place of a recursion that a document could make as deep as it likes
CanonicalJson::Parser::Cursor CanonicalJson::Parser::value(Cursor at) {
    for (;;) {
        if (!go_on(at.in)) {
            return {nullptr, nullptr};
        }
        at.in = skip_white_space(at.in, end_);
        const char first = byte(at.in);
        if (first == '{' || first == '[') {
            if (!open(at, first == '{')) {
                return {nullptr, nullptr};
            }
            *at.out++ = *at.in++;
            at.in = skip_white_space(at.in, end_);
            if (byte(at.in) != target_.open_.back().closing) {
                at = first == '{' ? member_name(at) : at;
                if (at.in == nullptr) {
                    return at;
                }
                continue;
            }
        } else {
            bool is_plain = true;
            at = first == '"'                      ? string(at, is_plain)
                 : is_digit(first) || first == '-' ? number(at)
                 : first == 't'                    ? literal(at, "true")
                 : first == 'f'                    ? literal(at, "false")
                                                   : literal(at, "null");
            if (at.in == nullptr) {
                return at;
            }
        }
        for (;;) {  // a value has ended, or an empty array or object has begun
            if (target_.open_.empty()) {
                return at;
            }
            at.in = skip_white_space(at.in, end_);
            const char c = byte(at.in);
            const Open& inner = target_.open_.back();
            if (c == ',') {
                *at.out++ = c;
                ++at.in;
                if (inner.closing == '}') {
                    target_.open_members_.back().text.end = written(at) - 1;
                    at.in = skip_white_space(at.in, end_);
                    at = member_name(at);
                    if (at.in == nullptr) {
                        return at;
                    }
                }
                break;
            }
            if (c != inner.closing) {
                return fail(Error::not_json, at.in);
            }
            *at.out++ = c;
            if (!close(at)) {
                return {nullptr, nullptr};
            }
            ++at.in;
        }
    }
}

bool CanonicalJson::Parser::open(Cursor at, bool is_object) {
    if (target_.open_.size() >= canonical_json_max_depth) {
        fail(Error::nesting_too_deep, at.in);
        return false;
    }
    target_.open_.push_back({is_object ? '}' : ']', true, target_.objects_.size(), target_.open_members_.size()});
    if (is_object) {
        target_.objects_.push_back({.begin = written(at)});
    }
    return true;
}

/// Closes the innermost array or object; its bracket is written, but not read.
bool CanonicalJson::Parser::close(Cursor at) {
    const Open closed = target_.open_.back();
    target_.open_.pop_back();
    if (closed.closing == ']') {
        return true;
    }
    if (target_.open_members_.size() > closed.first_member) {
        target_.open_members_.back().text.end = written(at) - 1;
    }
    if (closed.in_order && closed.object + 1 == target_.objects_.size()) {
        target_.objects_.pop_back();  // nothing in it will move
    } else {
        Object& object = target_.objects_[closed.object];
        object.end = written(at);
        object.next_object = target_.objects_.size();
        object.first_member = target_.ordered_members_.size();
        if (!closed.in_order) {
            object.members = target_.open_members_.size() - closed.first_member;
            error_ = MemberOrder(target_).sort(closed.first_member, check_);
            if (error_ != Error::none) {
                return false;
            }
        }
    }
    target_.open_members_.resize(closed.first_member);
    return true;
}

/// The name of a member and the colon.
CanonicalJson::Parser::Cursor CanonicalJson::Parser::member_name(Cursor at) {
    if (byte(at.in) != '"') {
        return fail(Error::not_json, at.in);
    }
    Open& object = target_.open_.back();
    const std::size_t begin = written(at);
    const char* const source = at.in + 1;
    const char* const name = at.out + 1;
    bool is_plain = true;
    at = string(at, is_plain);
    if (at.in == nullptr) {
        return at;
    }
    const auto size = static_cast<std::size_t>(at.out - 1 - name);
    // What was written a moment ago is slow to read again, so that the prefix is read from the document where that is the same.
    const bool is_same = is_plain && source + size + 1 == at.in && end_ - source >= 8;
    const std::uint64_t prefix = is_same    ? MemberOrder::prefix_of_plain(source, size)
                                 : is_plain ? MemberOrder::prefix_of_plain(name, size)
                                            : MemberOrder::prefix_of({name, size});
    std::vector<Member>& members = target_.open_members_;
    members.push_back(
        {{begin, 0, target_.objects_.size()}, size, static_cast<std::size_t>(source - 1 - begin_), prefix, is_plain});
    if (object.in_order && members.size() - object.first_member > 1) {
        object.in_order = MemberOrder(target_).before(members[members.size() - 2], members.back());
    }
    at.in = skip_white_space(at.in, end_);
    if (byte(at.in) != ':') {
        return fail(Error::not_json, at.in);
    }
    *at.out++ = ':';
    ++at.in;
    return at;
}

/// A string; is_plain becomes false when its text has an escape, or a character at or beyond U+E000.
inline CanonicalJson::Parser::Cursor CanonicalJson::Parser::string(Cursor at, bool& is_plain) {
    *at.out++ = *at.in++;
    for (;;) {
        if (end_ - at.in >= static_cast<std::ptrdiff_t>(json_bytes::block_size)) {
            const std::size_t plain = json_bytes::copy_plain(at.in, at.out);
            at.in += plain;
            at.out += plain;
            if (plain == json_bytes::block_size) {
                continue;
            }
        } else if (at.in == end_) {
            return fail(Error::not_json, at.in);
        }
        const auto c = static_cast<unsigned char>(*at.in);
        if (c == '"') {
            *at.out++ = *at.in++;
            return at;
        }
        if (c == '\\') {
            at = escape(at, is_plain);
        } else if (c >= 0x80) {
            at = multibyte(at, is_plain);
        } else if (c < 0x20) {
            return fail(Error::not_json, at.in);
        } else {
            *at.out++ = *at.in++;
        }
        if (at.in == nullptr) {
            return at;
        }
    }
}

/// A run of characters beyond ASCII.
CanonicalJson::Parser::Cursor CanonicalJson::Parser::multibyte(Cursor at, bool& is_plain) {
    if (!go_on(at.in)) {
        return {nullptr, nullptr};
    }
    while (at.in != end_ && static_cast<unsigned char>(*at.in) >= 0x80) {
        const std::size_t size = json_bytes::utf8_sequence(at.in, end_);
        if (size == 0) {
            return fail(Error::invalid_utf8, at.in);
        }
        is_plain = is_plain && static_cast<unsigned char>(*at.in) < 0xEE;
        std::memcpy(at.out, at.in, size);
        at.in += size;
        at.out += size;
    }
    return at;
}

bool CanonicalJson::Parser::read_hex4(const char* in, std::uint32_t& code_unit) const noexcept {
    code_unit = 0;
    for (int i = 0; i < 4; ++i, ++in) {
        const char c = byte(in);
        const char lower = static_cast<char>(c | 0x20);
        if (is_digit(c)) {
            code_unit = code_unit << 4 | static_cast<std::uint32_t>(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            code_unit = code_unit << 4 | static_cast<std::uint32_t>(lower - 'a' + 10);
        } else {
            return false;
        }
    }
    return true;
}

/// An escape, written the way of RFC 8785 section 3.2.2.2: the character itself where that is allowed, else the shortest escape.
CanonicalJson::Parser::Cursor CanonicalJson::Parser::escape(Cursor at, bool& is_plain) {
    const char* const begin = at.in;
    if (!go_on(begin)) {
        return {nullptr, nullptr};
    }
    const char kind = byte(begin + 1);
    if (kind != 'u') {
        switch (kind) {
            case '/':
                *at.out++ = kind;
                break;
            case '"':
            case '\\':
            case 'b':
            case 'f':
            case 'n':
            case 'r':
            case 't':
                is_plain = false;
                *at.out++ = '\\';
                *at.out++ = kind;
                break;
            default:
                return fail(Error::not_json, begin);
        }
        return {begin + 2, at.out};
    }
    std::uint32_t code_point = 0;
    if (!read_hex4(begin + 2, code_point)) {
        return fail(Error::not_json, begin);
    }
    at.in = begin + 6;
    if (code_point >= 0xD800 && code_point <= 0xDFFF) {
        std::uint32_t low = 0;
        const bool is_pair = code_point < 0xDC00 && byte(at.in) == '\\' && byte(at.in + 1) == 'u' &&
                             read_hex4(at.in + 2, low) && low >= 0xDC00 && low <= 0xDFFF;
        if (!is_pair) {
            return fail(Error::lone_surrogate, begin);
        }
        code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
        at.in += 6;
    }
    if (code_point >= 0x20 && code_point != '"' && code_point != '\\') {
        is_plain = is_plain && code_point < 0xE000;
        at.out = json_bytes::write_utf8(code_point, at.out);
        return at;
    }
    constexpr std::string_view hex = "0123456789abcdef";
    constexpr std::string_view short_forms = "uuuuuuuubtnufr";  // of U+0000 to U+000D
    is_plain = false;
    *at.out++ = '\\';
    const char form = code_point >= 0x20                ? static_cast<char>(code_point)
                      : code_point < short_forms.size() ? short_forms[code_point]
                                                        : 'u';
    *at.out++ = form;
    if (form == 'u') {
        *at.out++ = '0';
        *at.out++ = '0';
        *at.out++ = hex[code_point >> 4];
        *at.out++ = hex[code_point & 0x0F];
    }
    return at;
}

inline CanonicalJson::Parser::Cursor CanonicalJson::Parser::number(Cursor at) {
    const char* const begin = at.in;
    const char* in = begin + (*begin == '-' ? 1 : 0);
    const auto skip_digits = [this, &in] {
        const char* const first = in;
        while (in != end_ && is_digit(*in)) {
            ++in;
        }
        return in - first;
    };
    const bool zero_integer = byte(in) == '0';
    std::ptrdiff_t digits = zero_integer ? 1 : skip_digits();
    in += zero_integer ? 1 : 0;
    bool is_canonical = digits <= canonical_number::safe_digits && (!zero_integer || *begin != '-');
    if (digits == 0) {
        return fail(Error::not_json, begin);
    }
    if (byte(in) == '.') {
        ++in;
        const bool zero_first = byte(in) == '0';
        const std::ptrdiff_t decimals = skip_digits();
        if (decimals == 0) {
            return fail(Error::not_json, begin);
        }
        digits += decimals;
        is_canonical = digits <= canonical_number::safe_digits && in[-1] != '0' && !(zero_integer && zero_first);
    }
    if ((byte(in) | 0x20) == 'e') {
        ++in;
        in += byte(in) == '+' || byte(in) == '-' ? 1 : 0;
        if (skip_digits() == 0) {
            return fail(Error::not_json, begin);
        }
        is_canonical = false;
    }
    const auto size = static_cast<std::size_t>(in - begin);
    if (is_canonical) {
        if (constexpr std::size_t longest = 2 * json_bytes::block_size;
            end_ - begin >= static_cast<std::ptrdiff_t>(longest)) {
            std::memcpy(at.out, begin, longest);  // a fixed size is faster
        } else {
            std::memcpy(at.out, begin, size);
        }
        return {in, at.out + size};
    }
    const Error error = canonical_number::write({begin, size}, options_.exact_numbers, at.out);
    return error == Error::none ? make_room({in, at.out}) : fail(error, begin);
}

/// Numbers are all that may grow (1e20): restores that there is room for the rest of the document.
CanonicalJson::Parser::Cursor CanonicalJson::Parser::make_room(Cursor at) {
    const std::size_t used = written(at);
    const std::size_t needed = used + static_cast<std::size_t>(end_ - at.in) + json_bytes::slack;
    if (target_.text_.size() < needed) {
        target_.text_.resize(needed + needed / 2);
        at.out = target_.text_.data() + used;
    }
    return at;
}

}  // namespace idempotency
