// The strict JSON parser: grammar (RFC 8259), UTF-8 (RFC 3629) and the limits of I-JSON (RFC 7493) in one loop.
// Called by canonical_json.cpp.
#include "core/canonical_json_parser.hpp"

#include <cstring>

#include "core/canonical_number.hpp"

namespace idempotency {
namespace {

using Error = CanonicalJsonError;

constexpr std::size_t bytes_between_cancel_checks = 64 * 1024;
/// Without an exponent, a number of fewer characters is within the range of a double.
constexpr std::size_t surely_in_range_size = 300;

constexpr bool is_digit(unsigned char c) noexcept { return c >= '0' && c <= '9'; }

/// Whether one of eight bytes is a quote, a backslash, a control character or not ASCII: what ends a run of plain characters.
bool has_special_byte(const char* eight) noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101;
    constexpr std::uint64_t highs = 0x8080808080808080;
    std::uint64_t word;
    std::memcpy(&word, eight, sizeof word);
    const std::uint64_t quote = word ^ (ones * '"');
    const std::uint64_t backslash = word ^ (ones * '\\');
    // (x - 1) borrows into the high bit for a zero byte; bytes with a high bit of their own are special anyway.
    return (((quote - ones) | (backslash - ones) | (word - ones * 0x20) | word) & highs) != 0;
}

void append_utf8(unsigned code_point, std::string& output) {
    const auto put = [&](unsigned byte) { output += static_cast<char>(byte); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0 | code_point >> 6);
        put(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        put(0xE0 | code_point >> 12);
        put(0x80 | (code_point >> 6 & 0x3F));
        put(0x80 | (code_point & 0x3F));
    } else {
        put(0xF0 | code_point >> 18);
        put(0x80 | (code_point >> 12 & 0x3F));
        put(0x80 | (code_point >> 6 & 0x3F));
        put(0x80 | (code_point & 0x3F));
    }
}

}  // namespace

Error CanonicalJson::Parser::parse() {
    target_.tokens_.clear();
    target_.containers_.clear();
    target_.member_order_.clear();
    target_.open_names_.clear();
    target_.open_.clear();
    target_.unescaped_.clear();
    for (;;) {
        if (position_ >= check_at_) {
            if (options_.cancelled != nullptr && options_.cancelled()) {
                return Error::cancelled;
            }
            check_at_ = position_ + bytes_between_cancel_checks;
        }
        skip_white_space();
        if (expecting_ == Expecting::nothing) {
            return at_end() ? Error::none : Error::not_json;
        }
        const bool closes = expecting_ == Expecting::close || (expecting_ == Expecting::first_name && at('}')) ||
                            (expecting_ == Expecting::first_element && at(']'));
        const Error error = closes ? close() : expecting_ == Expecting::first_name ? name() : value();
        if (error != Error::none) {
            return error;
        }
    }
}

Error CanonicalJson::Parser::value() {
    Error error = Error::none;
    switch (byte()) {
        case '{':
            return open(true);
        case '[':
            return open(false);
        case '"':
            error = string();
            break;
        case 't':
            error = literal("true");
            break;
        case 'f':
            error = literal("false");
            break;
        case 'n':
            error = literal("null");
            break;
        default:
            error = number();
    }
    return error == Error::none ? after_value() : error;
}

Error CanonicalJson::Parser::open(bool is_object) {
    if (target_.open_.size() >= canonical_json_max_depth) {
        return Error::nesting_too_deep;
    }
    const std::size_t container = target_.containers_.size();
    target_.containers_.push_back({});
    target_.tokens_.push_back({is_object ? Token::Kind::object : Token::Kind::array, container, 0});
    target_.open_.push_back({container, target_.open_names_.size(), is_object, true});
    ++position_;
    expecting_ = is_object ? Expecting::first_name : Expecting::first_element;
    return Error::none;
}

Error CanonicalJson::Parser::close() {
    Open& closing = target_.open_.back();
    if (closing.is_object) {
        if (const Error error = target_.order_members(closing); error != Error::none) {
            return error;
        }
    }
    target_.containers_[closing.container].tokens_end = target_.tokens_.size();
    target_.open_.pop_back();
    ++position_;
    return after_value();
}

/// A value has ended: what may follow it.
Error CanonicalJson::Parser::after_value() {
    if (target_.open_.empty()) {
        expecting_ = Expecting::nothing;
        return Error::none;
    }
    const Open& inner = target_.open_.back();
    ++target_.containers_[inner.container].children;
    skip_white_space();
    if (at(',')) {
        ++position_;
        if (!inner.is_object) {
            expecting_ = Expecting::value;
            return Error::none;
        }
        skip_white_space();
        return name();
    }
    // parse() closes it, one container a turn: brackets do not nest calls.
    expecting_ = Expecting::close;
    return at(inner.is_object ? '}' : ']') ? Error::none : Error::not_json;
}

Error CanonicalJson::Parser::name() {
    if (!at('"')) {
        return Error::not_json;
    }
    const std::size_t token = target_.tokens_.size();
    if (const Error error = string(); error != Error::none) {
        return error;
    }
    Open& object = target_.open_.back();
    if (object.names_ascend && target_.open_names_.size() > object.names_begin) {
        const Token& previous = target_.tokens_[target_.open_names_.back()];
        object.names_ascend = compare_names(target_.text_of(previous), target_.text_of(target_.tokens_[token])) < 0;
    }
    target_.open_names_.push_back(token);
    skip_white_space();
    if (!at(':')) {
        return Error::not_json;
    }
    ++position_;
    expecting_ = Expecting::value;
    return Error::none;
}

Error CanonicalJson::Parser::string() {
    const std::size_t begin = ++position_;
    if (const Error error = plain_characters(); error != Error::none) {
        return error;
    }
    if (byte() == '\\') {
        return escaped_string(begin);
    }
    target_.tokens_.push_back({Token::Kind::string, begin, position_});
    ++position_;
    return Error::none;
}

/// The rest of a string that has an escape; its characters go to the buffer of unescaped strings.
Error CanonicalJson::Parser::escaped_string(std::size_t begin) {
    std::string& unescaped = target_.unescaped_;
    const std::size_t unescaped_begin = unescaped.size();
    std::size_t run = begin;
    for (;;) {
        unescaped += document_.substr(run, position_ - run);
        if (byte() == '"') {
            break;
        }
        if (const Error error = escape(); error != Error::none) {
            return error;
        }
        run = position_;
        if (const Error error = plain_characters(); error != Error::none) {
            return error;
        }
    }
    target_.tokens_.push_back({Token::Kind::unescaped_string, unescaped_begin, unescaped.size()});
    ++position_;
    return Error::none;
}

Error CanonicalJson::Parser::escape() {
    constexpr std::string_view escapes = "\"\\/bfnrt";
    constexpr std::string_view characters = "\"\\/\b\f\n\r\t";
    const char kind = static_cast<char>(byte(1));
    position_ += 2;
    if (kind != 'u') {
        const std::size_t i = escapes.find(kind);
        if (i == std::string_view::npos || position_ > document_.size()) {
            position_ -= 2;
            return Error::not_json;
        }
        target_.unescaped_ += characters[i];
        return Error::none;
    }
    unsigned code_point = 0;
    if (!hex4(code_point)) {
        return Error::not_json;
    }
    if (code_point >= 0xDC00 && code_point <= 0xDFFF) {
        return Error::lone_surrogate;
    }
    if (code_point >= 0xD800 && code_point <= 0xDBFF) {
        if (byte() != '\\' || byte(1) != 'u') {
            return Error::lone_surrogate;
        }
        position_ += 2;
        unsigned low = 0;
        if (!hex4(low)) {
            return Error::not_json;
        }
        if (low < 0xDC00 || low > 0xDFFF) {
            return Error::lone_surrogate;
        }
        code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(code_point, target_.unescaped_);
    return Error::none;
}

bool CanonicalJson::Parser::hex4(unsigned& code_unit) {
    code_unit = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned char c = byte();
        const unsigned char lower = c | 0x20;
        if (is_digit(c)) {
            code_unit = code_unit * 16 + (c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            code_unit = code_unit * 16 + (lower - 'a' + 10U);
        } else {
            return false;
        }
        ++position_;
    }
    return true;
}

/// Characters up to a quote or a backslash.
Error CanonicalJson::Parser::plain_characters() {
    for (;;) {
        while (position_ + 8 <= document_.size() && !has_special_byte(document_.data() + position_)) {
            position_ += 8;
        }
        if (at_end()) {
            return Error::not_json;
        }
        const unsigned char c = byte();
        if (c == '"' || c == '\\') {
            return Error::none;
        }
        if (c < 0x20) {
            return Error::not_json;
        }
        if (c < 0x80) {
            ++position_;
        } else if (const Error error = multibyte_character(); error != Error::none) {
            return error;
        }
    }
}

/// One character of two to four bytes: no overlong form, no surrogate, nothing beyond U+10FFFF.
Error CanonicalJson::Parser::multibyte_character() {
    const unsigned char lead = byte();
    const unsigned char second = byte(1);
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    std::size_t size = 0;
    if (lead >= 0xC2 && lead <= 0xDF) {
        size = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        size = 3;
        low = lead == 0xE0 ? 0xA0 : low;
        high = lead == 0xED ? 0x9F : high;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        size = 4;
        low = lead == 0xF0 ? 0x90 : low;
        high = lead == 0xF4 ? 0x8F : high;
    } else {
        return Error::invalid_utf8;
    }
    if (second < low || second > high) {
        return Error::invalid_utf8;
    }
    for (std::size_t i = 2; i < size; ++i) {
        if ((byte(i) & 0xC0) != 0x80) {
            return Error::invalid_utf8;
        }
    }
    position_ += size;
    return Error::none;
}

Error CanonicalJson::Parser::literal(std::string_view text) {
    if (document_.substr(position_, text.size()) != text) {
        return Error::not_json;
    }
    target_.tokens_.push_back({Token::Kind::literal, position_, position_ + text.size()});
    position_ += text.size();
    return Error::none;
}

bool CanonicalJson::Parser::digits() {
    const std::size_t begin = position_;
    while (is_digit(byte())) {
        ++position_;
    }
    return position_ > begin;
}

Error CanonicalJson::Parser::number() {
    const std::size_t begin = position_;
    if (at('-')) {
        ++position_;
    }
    if (at('0')) {
        ++position_;
    } else if (!digits()) {
        return Error::not_json;
    }
    if (at('.')) {
        ++position_;
        if (!digits()) {
            return Error::not_json;
        }
    }
    const bool has_exponent = (byte() | 0x20) == 'e';
    if (has_exponent) {
        ++position_;
        if (at('+') || at('-')) {
            ++position_;
        }
        if (!digits()) {
            return Error::not_json;
        }
    }
    const std::string_view text = document_.substr(begin, position_ - begin);
    if (options_.exact_numbers || has_exponent || text.size() >= surely_in_range_size) {
        switch (canonical_number::range_of(text, options_.exact_numbers)) {
            case canonical_number::Range::beyond_double:
                position_ = begin;
                return Error::number_out_of_range;
            case canonical_number::Range::not_exact:
                position_ = begin;
                return Error::number_not_exact;
            case canonical_number::Range::in_range:
                break;
        }
    }
    target_.tokens_.push_back({Token::Kind::number, begin, position_});
    return Error::none;
}

void CanonicalJson::Parser::skip_white_space() noexcept {
    while (!at_end()) {
        const char c = document_[position_];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
            return;
        }
        ++position_;
    }
}

}  // namespace idempotency
