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
    none,                 ///< it has one
    not_json,             ///< does not parse (RFC 8259): trailing text, BOM, NUL, bad escape, white space only, ...
    duplicate_member,     ///< two members of one object have the same name, compared unescaped (RFC 7493 section 2.3)
    invalid_utf8,         ///< a byte sequence that is not UTF-8 (RFC 3629)
    lone_surrogate,       ///< an escaped surrogate without its partner (RFC 7493 section 2.1)
    number_out_of_range,  ///< a number beyond the range of an IEEE 754 double (RFC 8785 section 3.2.2.3)
    number_not_exact,     ///< only with exact_numbers: a number that a double changes, or -0
    nesting_too_deep,     ///< more than canonical_json_max_depth open arrays and objects
    cancelled,            ///< the `cancelled` callback asked to stop
};

/// Open arrays and objects that a document may hold at once. Deeper documents have no canonical form.
inline constexpr std::size_t canonical_json_max_depth = 1000;

/// A short English reason for an error, lower case, for messages; "none" for none.
[[nodiscard]] std::string_view to_string(CanonicalJsonError error) noexcept;

/// How a document is canonicalised.
struct CanonicalJsonOptions {
    /// Refuse -0, and numbers whose canonical text has another decimal value (9007199254740993 becomes 9007199254740992), so that
    /// different numbers never share a canonical form. 0.1 and 1.10 are fine.
    bool exact_numbers = false;
    /// Asked about every 64 KiB of work; true stops with CanonicalJsonError::cancelled. May be null.
    bool (*cancelled)() = nullptr;
};

/// Writes the canonical form of JSON documents. Keeps its buffers between documents (up to 1 MiB each), so one object serves
/// many documents of one thread without allocating again. Not for two threads at once.
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
    class Parser;
    class MemberOrder;

    /// The canonical text of a member in text_, from the quote of its name to the end of its value.
    struct MemberText {
        std::size_t begin;
        std::size_t end;
        std::size_t first_object;  ///< index in objects_ of the first one in its value, if there is any
    };

    /// A member of an object that is open, while parsing.
    struct Member {
        MemberText text;
        std::size_t name_size;  ///< of the text between the quotes
        std::size_t offset;     ///< of its name in the document
        std::uint64_t prefix;   ///< the first eight bytes of the name, ordered as the names are
        bool name_is_plain;     ///< the order of the bytes between the quotes is the canonical order of the name
    };

    /// An object whose members must be written in another order, or that has such an object in it.
    struct Object {
        std::size_t begin = 0;         ///< of its text in text_
        std::size_t end = 0;           ///< one past its closing brace
        std::size_t first_member = 0;  ///< index in ordered_members_
        std::size_t members = 0;       ///< none when its own order is right already
        std::size_t next_object = 0;   ///< index in objects_ of the first one behind it
    };

    /// An array or object that is open, while parsing.
    struct Open {
        char closing;              ///< the bracket that ends it
        bool in_order;             ///< object: every name came after the one before it
        std::size_t object;        ///< object: index in objects_
        std::size_t first_member;  ///< object: index in open_members_
    };

    /// An object that is being written in its canonical order.
    struct Writing {
        std::size_t object;
        std::size_t members_written;
        std::size_t end_of_rest;  ///< what is written behind the object ends here in text_
    };

    /// A member's name while the names of an object are sorted.
    struct Name {
        std::uint64_t prefix;
        std::size_t member;  ///< index in the object
    };

    [[nodiscard]] CanonicalJsonError write_in_order(std::size_t size, std::string& output,
                                                    const CanonicalJsonOptions& options);
    void keep_small_buffers();

    std::size_t error_offset_ = 0;
    std::string text_;  ///< the canonical form but for the order of the members, and space for more
    std::vector<Open> open_;
    std::vector<Member> open_members_;
    std::vector<Object> objects_;  ///< in the order of their begin
    std::vector<MemberText> ordered_members_;
    std::vector<Name> names_;  ///< of the object that was sorted last
    std::vector<Name> merged_names_;
    std::vector<Writing> writing_;
};

}  // namespace idempotency
