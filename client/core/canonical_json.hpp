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
    std::size_t error_offset_ = 0;
};

}  // namespace idempotency
