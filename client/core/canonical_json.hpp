// Canonical JSON (RFC 8785), the form of a request body that the fingerprint covers.
// Used by the fingerprint, in the server and in the shim, and by the C interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace idempotency {

/// Why a document has no canonical form. The fingerprint then covers its raw bytes.
enum class CanonicalJsonError : std::uint8_t {
    none,
    not_json,             ///< does not parse (RFC 8259): trailing text, BOM, NUL, bad escape, white space only, ...
    duplicate_member,     ///< two members of one object have the same name, compared unescaped (RFC 7493 section 2.3)
    invalid_utf8,         ///< a byte sequence that is not UTF-8 (RFC 3629)
    lone_surrogate,       ///< an escaped surrogate without its partner (RFC 7493 section 2.1)
    number_out_of_range,  ///< a number beyond the range of an IEEE 754 double (RFC 8785 section 3.2.2.3)
    number_not_exact,     ///< only with exact_numbers: a number that no double holds exactly, or -0
    nesting_too_deep,     ///< more than canonical_json_max_depth open arrays and objects
    cancelled,            ///< the `cancelled` callback asked to stop
};

/// Open arrays and objects that a document may hold at once. Deeper documents have no canonical form.
inline constexpr std::size_t canonical_json_max_depth = 1000;

/// A short English reason for an error, lower case, for messages; "none" for none.
[[nodiscard]] std::string_view to_string(CanonicalJsonError error) noexcept;

struct CanonicalJsonOptions {
    /// Refuse numbers whose decimal value a double does not hold exactly (9007199254740993), and -0.
    bool exact_numbers = false;
    /// Asked about every 64 KiB of work; true stops with CanonicalJsonError::cancelled. May be null.
    bool (*cancelled)() = nullptr;
};

/// Writes the canonical form of JSON documents. Keeps its buffers between documents, so one object serves many
/// documents of one thread without allocating again. Not for two threads at once.
class CanonicalJson {
public:
    /// @param document the document, UTF-8
    /// @param output   receives the canonical form; unspecified content unless the result is `none`
    /// @return none, or why there is no canonical form. Throws nothing but std::bad_alloc from its buffers.
    [[nodiscard]] CanonicalJsonError write(std::string_view document, std::string& output,
                                           const CanonicalJsonOptions& options = {});

    /// The byte offset in the last document where its error was found.
    [[nodiscard]] std::size_t error_offset() const noexcept { return error_offset_; }

private:
    /// A value or a member's name, in the order of the document.
    struct Token {
        enum class Kind : std::uint8_t { literal, number, string, unescaped_string, array, object };

        Kind kind;
        std::size_t begin;  ///< in the document; unescaped_string: in unescaped_; array, object: index in containers_
        std::size_t end;    ///< one past the last byte; unused for array and object
    };

    struct Container {
        std::size_t children = 0;     ///< elements or members
        std::size_t order_begin = 0;  ///< object: its first name in member_order_
        std::size_t tokens_end = 0;   ///< one past its last token
    };

    /// An array or object that is still open, while parsing.
    struct Open {
        std::size_t container;
        std::size_t names_begin;  ///< object: its first name in open_names_
        bool is_object;
        bool names_ascend;  ///< object: every name came after the one before it
    };

    /// An array or object that is being written.
    struct Writing {
        std::size_t container;
        std::size_t children_written;
        bool is_object;
    };

    class Parser;

    [[nodiscard]] std::string_view text_of(const Token& token) const noexcept;
    [[nodiscard]] static int compare_names(std::string_view a, std::string_view b) noexcept;
    [[nodiscard]] CanonicalJsonError order_members(Open& open);
    [[nodiscard]] CanonicalJsonError emit(std::string& output, const CanonicalJsonOptions& options);

    std::string_view document_;
    std::size_t error_offset_ = 0;
    std::vector<Token> tokens_;
    std::vector<Container> containers_;
    std::vector<std::size_t> member_order_;  ///< tokens of names, each object's in canonical order
    std::vector<std::size_t> open_names_;    ///< tokens of names of the objects that are still open
    std::vector<Open> open_;
    std::vector<Writing> writing_;
    std::string unescaped_;
};

}  // namespace idempotency
