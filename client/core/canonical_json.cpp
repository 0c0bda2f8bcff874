// Canonical JSON: parses a document into tokens with the order of its members, then writes it once.
// Called by the fingerprint, by idempotency_canonical_json and by the C interface.
#include "core/canonical_json.hpp"

#include <algorithm>

#include "core/canonical_json_parser.hpp"
#include "core/canonical_number.hpp"

namespace idempotency {
namespace {

constexpr std::size_t work_between_cancel_checks = 64 * 1024;

/// UTF-16 code units order supplementary characters (UTF-8 lead bytes F0 to F4) before U+E000 to U+FFFF (EE and EF).
constexpr unsigned utf16_rank(unsigned char byte) noexcept {
    return byte == 0xEE || byte == 0xEF ? byte + 0x10U : byte;
}

constexpr bool must_be_escaped(char c) noexcept {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}

/// Writes the characters of a string, those escaped that must be (RFC 8785 section 3.2.2.2).
void append_escaped(std::string_view text, std::string& output) {
    constexpr std::string_view hex = "0123456789abcdef";
    constexpr std::string_view with_short_form = "\"\\\b\t\n\f\r";
    constexpr std::string_view short_form = "\"\\btnfr";
    for (auto run = text.begin(); run != text.end();) {
        const auto escaped = std::find_if(run, text.end(), must_be_escaped);
        output.append(run, escaped);
        if (escaped == text.end()) {
            return;
        }
        output += '\\';
        if (const std::size_t i = with_short_form.find(*escaped); i != std::string_view::npos) {
            output += short_form[i];
        } else {
            output += "u00";
            output += hex[static_cast<unsigned char>(*escaped) >> 4];
            output += hex[static_cast<unsigned char>(*escaped) & 0x0F];
        }
        run = escaped + 1;
    }
}

}  // namespace

std::string_view to_string(CanonicalJsonError error) noexcept {
    switch (error) {
        case CanonicalJsonError::none:
            return "none";
        case CanonicalJsonError::not_json:
            return "not JSON";
        case CanonicalJsonError::duplicate_member:
            return "duplicate member name";
        case CanonicalJsonError::invalid_utf8:
            return "invalid UTF-8";
        case CanonicalJsonError::lone_surrogate:
            return "lone surrogate";
        case CanonicalJsonError::number_out_of_range:
            return "number beyond the range of a double";
        case CanonicalJsonError::number_not_exact:
            return "number that a double does not hold exactly";
        case CanonicalJsonError::nesting_too_deep:
            return "nesting too deep";
        case CanonicalJsonError::cancelled:
            return "cancelled";
    }
    return "unknown error";
}

CanonicalJsonError CanonicalJson::write(std::string_view document, std::string& output,
                                        const CanonicalJsonOptions& options) {
    document_ = document;
    Parser parser(*this, options);
    const CanonicalJsonError error = parser.parse();
    if (error != CanonicalJsonError::none) {
        error_offset_ = parser.offset();
        return error;
    }
    return emit(output, options);
}

std::string_view CanonicalJson::text_of(const Token& token) const noexcept {
    const std::string_view source = token.kind == Token::Kind::unescaped_string ? std::string_view(unescaped_) : document_;
    return source.substr(token.begin, token.end - token.begin);
}

/// Compares names by their UTF-16 code units (RFC 8785 section 3.2.3).
int CanonicalJson::compare_names(std::string_view a, std::string_view b) noexcept {
    const std::size_t common = std::min(a.size(), b.size());
    const auto [in_a, in_b] = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin());
    if (in_a == a.begin() + static_cast<std::ptrdiff_t>(common)) {
        return a.size() < b.size() ? -1 : static_cast<int>(a.size() > b.size());
    }
    return utf16_rank(static_cast<unsigned char>(*in_a)) < utf16_rank(static_cast<unsigned char>(*in_b)) ? -1 : 1;
}

/// Closes the names of an object: their canonical order, no two the same.
CanonicalJsonError CanonicalJson::order_members(Open& open) {
    const auto first = open_names_.begin() + static_cast<std::ptrdiff_t>(open.names_begin);
    if (!open.names_ascend) {
        std::sort(first, open_names_.end(), [this](std::size_t a, std::size_t b) {
            return compare_names(text_of(tokens_[a]), text_of(tokens_[b])) < 0;
        });
        const auto same = std::adjacent_find(first, open_names_.end(), [this](std::size_t a, std::size_t b) {
            return text_of(tokens_[a]) == text_of(tokens_[b]);
        });
        if (same != open_names_.end()) {
            return CanonicalJsonError::duplicate_member;
        }
    }
    Container& container = containers_[open.container];
    container.order_begin = member_order_.size();
    member_order_.insert(member_order_.end(), first, open_names_.end());
    open_names_.erase(first, open_names_.end());
    return CanonicalJsonError::none;
}

CanonicalJsonError CanonicalJson::emit(std::string& output, const CanonicalJsonOptions& options) {
    output.clear();
    output.reserve(document_.size());
    writing_.clear();
    std::size_t check_at = work_between_cancel_checks;
    const auto append_string = [&](const Token& token) {
        output += '"';
        if (token.kind == Token::Kind::unescaped_string) {
            append_escaped(text_of(token), output);
        } else {
            output += text_of(token);
        }
        output += '"';
    };
    std::size_t next = 0;  // the token to write
    for (;;) {
        if (output.size() >= check_at) {
            if (options.cancelled != nullptr && options.cancelled()) {
                return CanonicalJsonError::cancelled;
            }
            check_at = output.size() + work_between_cancel_checks;
        }
        const Token& token = tokens_[next++];
        switch (token.kind) {
            case Token::Kind::literal:
                output += text_of(token);
                break;
            case Token::Kind::number:
                canonical_number::append(text_of(token), output);
                break;
            case Token::Kind::string:
            case Token::Kind::unescaped_string:
                append_string(token);
                break;
            case Token::Kind::array:
            case Token::Kind::object: {
                const bool is_object = token.kind == Token::Kind::object;
                output += is_object ? '{' : '[';
                writing_.push_back({token.begin, 0, is_object});
                break;
            }
        }
        // A value has ended, or a container has begun: find the next value, closing what is complete.
        for (;;) {
            if (writing_.empty()) {
                return CanonicalJsonError::none;
            }
            Writing& writing = writing_.back();
            const Container& container = containers_[writing.container];
            if (writing.children_written < container.children) {
                if (writing.children_written > 0) {
                    output += ',';
                }
                if (writing.is_object) {
                    const std::size_t name = member_order_[container.order_begin + writing.children_written];
                    append_string(tokens_[name]);
                    output += ':';
                    next = name + 1;
                }
                ++writing.children_written;
                break;
            }
            output += writing.is_object ? '}' : ']';
            next = container.tokens_end;
            writing_.pop_back();
        }
    }
}

}  // namespace idempotency
