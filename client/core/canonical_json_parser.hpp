// The strict JSON parser behind canonical JSON (RFC 8259): one pass, iterative, no exceptions.
// Used by canonical_json.cpp only.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/canonical_json.hpp"

namespace idempotency {

/// Fills the tokens of one CanonicalJson from its document.
class CanonicalJson::Parser {
public:
    Parser(CanonicalJson& target, const CanonicalJsonOptions& options) noexcept
        : target_(target), options_(options), document_(target.document_) {}

    [[nodiscard]] CanonicalJsonError parse();

    /// Where parsing stopped, in bytes from the start.
    [[nodiscard]] std::size_t offset() const noexcept { return position_; }

private:
    [[nodiscard]] CanonicalJsonError value();
    [[nodiscard]] CanonicalJsonError name();
    [[nodiscard]] CanonicalJsonError string();
    [[nodiscard]] CanonicalJsonError escaped_string(std::size_t begin);
    [[nodiscard]] CanonicalJsonError escape();
    [[nodiscard]] CanonicalJsonError number();
    [[nodiscard]] CanonicalJsonError literal(std::string_view text);
    [[nodiscard]] CanonicalJsonError open(bool is_object);
    [[nodiscard]] CanonicalJsonError close();
    [[nodiscard]] CanonicalJsonError after_value();
    [[nodiscard]] CanonicalJsonError plain_characters();
    [[nodiscard]] CanonicalJsonError multibyte_character();
    [[nodiscard]] bool hex4(unsigned& code_unit);
    [[nodiscard]] bool digits();
    void skip_white_space() noexcept;

    [[nodiscard]] bool at_end() const noexcept { return position_ == document_.size(); }
    [[nodiscard]] bool at(char c) const noexcept { return !at_end() && document_[position_] == c; }
    [[nodiscard]] unsigned char byte(std::size_t ahead = 0) const noexcept {
        return position_ + ahead < document_.size() ? static_cast<unsigned char>(document_[position_ + ahead]) : 0;
    }

    enum class Expecting : std::uint8_t { value, first_element, first_name, close, nothing };

    CanonicalJson& target_;
    const CanonicalJsonOptions& options_;
    std::string_view document_;
    std::size_t position_ = 0;
    std::size_t check_at_ = 0;
    Expecting expecting_ = Expecting::value;
};

}  // namespace idempotency
