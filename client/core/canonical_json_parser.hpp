// The strict JSON parser behind canonical JSON (RFC 8259): one pass, iterative, no exceptions.
// Used by canonical_json.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/canonical_json.hpp"

namespace idempotency {

/// Asks the `cancelled` callback about every 64 KiB of work.
class CancelCheck {
public:
    static constexpr std::size_t interval = std::size_t{64} * 1024;

    explicit CancelCheck(const CanonicalJsonOptions& options) noexcept : cancelled_(options.cancelled) {}

    /// @param work bytes read, compared or written
    /// @return false to stop
    [[nodiscard]] bool go_on_after(std::size_t work) noexcept {
        work_ += work;
        return work_ < interval || ask();
    }
    [[nodiscard]] bool ask() noexcept {
        stopped_ = stopped_ || (cancelled_ != nullptr && cancelled_());
        work_ = stopped_ ? interval : 0;
        return !stopped_;
    }
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }

private:
    bool (*cancelled_)();
    std::size_t work_ = 0;
    bool stopped_ = false;
};

/// Puts the members of one object into canonical order (RFC 8785 section 3.2.3).
class CanonicalJson::MemberOrder {
public:
    explicit MemberOrder(CanonicalJson& target) noexcept : target_(target) {}

    /// The first eight bytes of a name as one number, in the order of the names; shorter names are filled with zeros.
    /// @param name its canonical text without the quotes
    [[nodiscard]] static std::uint64_t prefix_of(std::string_view name) noexcept;

    /// The same for a name that is plain.
    /// @param eight eight readable bytes that begin with the name
    [[nodiscard]] static std::uint64_t prefix_of_plain(const char* eight, std::size_t name_size) noexcept;

    /// Whether the name of `a` comes before the name of `b`.
    [[nodiscard]] bool before(const Member& a, const Member& b) const noexcept;

    /// Appends the open members from `first` on to ordered_members_, sorted.
    /// @return duplicate_member when two have the same name (error_offset_ tells where), cancelled when the check stopped
    [[nodiscard]] CanonicalJsonError sort(std::size_t first, CancelCheck& check);

private:
    [[nodiscard]] std::string_view name_of(const Member& member) const noexcept {
        return {target_.text_.data() + member.text.begin + 1, member.name_size};
    }
    [[nodiscard]] bool order_like_the_last(const Member* members, std::size_t count) const noexcept;
    [[nodiscard]] bool order_anew(const Member* members, std::size_t count, CancelCheck& check);

    CanonicalJson& target_;
};

/// Fills text_, objects_ and ordered_members_ of one CanonicalJson from a document.
class CanonicalJson::Parser {
public:
    Parser(CanonicalJson& target, std::string_view document, const CanonicalJsonOptions& options) noexcept
        : target_(target),
          options_(options),
          begin_(document.data()),
          end_(document.data() + document.size()),
          check_(options) {}

    /// @return none, and then size() bytes of text_ hold the document
    [[nodiscard]] CanonicalJsonError parse();

    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    /// Where the document is read and the text is written. Held in registers: both null after an error.
    struct Cursor {
        const char* in;
        char* out;
    };

    [[nodiscard]] Cursor value(Cursor at);
    [[nodiscard]] Cursor string(Cursor at, bool& is_plain);
    [[nodiscard]] Cursor escape(Cursor at, bool& is_plain);
    [[nodiscard]] Cursor multibyte(Cursor at, bool& is_plain);
    [[nodiscard]] Cursor number(Cursor at);
    [[nodiscard]] Cursor make_room(Cursor at);
    template <std::size_t TextSize>
    [[nodiscard]] Cursor literal(Cursor at, const char (&text)[TextSize]);
    [[nodiscard]] Cursor member_name(Cursor at);
    [[nodiscard]] bool open(Cursor at, bool is_object);
    [[nodiscard]] bool close(Cursor at);
    [[nodiscard]] bool read_hex4(const char* in, std::uint32_t& code_unit) const noexcept;

    [[nodiscard]] char byte(const char* in) const noexcept { return in != end_ ? *in : '\0'; }
    [[nodiscard]] std::size_t written(Cursor at) const noexcept {
        return static_cast<std::size_t>(at.out - target_.text_.data());
    }
    [[nodiscard]] bool go_on(const char* in) noexcept { return end_ - in > check_at_rest_ || ask(in); }
    [[nodiscard]] bool ask(const char* in) noexcept;
    Cursor fail(CanonicalJsonError error, const char* in) noexcept;

    CanonicalJson& target_;
    const CanonicalJsonOptions& options_;
    const char* begin_;
    const char* end_;
    std::ptrdiff_t check_at_rest_ = 0;  ///< the check is asked when no more than this is left to read
    CancelCheck check_;
    std::size_t size_ = 0;
    CanonicalJsonError error_ = CanonicalJsonError::none;
};

}  // namespace idempotency
