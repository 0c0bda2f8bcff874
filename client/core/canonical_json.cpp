// Canonical JSON: the order of members, and writing the parsed text once in that order.
// Called by the fingerprint, by idempotency_canonical_json and by the C interface.
#include "core/canonical_json.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/canonical_json_parser.hpp"
#include "core/json_bytes.hpp"

namespace idempotency {
namespace {

/// Buffers beyond this are given back, so that one large document does not keep its memory for ever.
constexpr std::size_t kept_buffer_size = std::size_t{1024} * 1024;

/// UTF-16 code units order supplementary characters (UTF-8 lead bytes F0 to F4) before U+E000 to U+FFFF (EE and EF).
constexpr unsigned utf16_rank(unsigned char byte) noexcept {
    return byte == 0xEE || byte == 0xEF ? byte + 0x10U : byte;
}

/// Reads one unescaped byte of a canonical string, ranked by UTF-16 order, and moves behind it.
unsigned next_rank(const char*& in) noexcept {
    if (*in != '\\') {
        return utf16_rank(static_cast<unsigned char>(*in++));
    }
    constexpr auto hex_value = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
    const char kind = in[1];
    in += 2;
    switch (kind) {
        case 'b':
            return '\b';
        case 't':
            return '\t';
        case 'n':
            return '\n';
        case 'f':
            return '\f';
        case 'r':
            return '\r';
        case 'u':  // a control character
            in += 4;
            return hex_value(in[-2]) << 4 | hex_value(in[-1]);
        default:
            return static_cast<unsigned char>(kind);
    }
}

/// Whether `a` comes before `b`, both canonical, at least one not plain.
bool before_unescaped(std::string_view a, std::string_view b) noexcept {
    const char* in_a = a.data();
    const char* in_b = b.data();
    const char* const end_a = in_a + a.size();
    const char* const end_b = in_b + b.size();
    while (in_a != end_a && in_b != end_b) {
        const unsigned rank_a = next_rank(in_a);
        const unsigned rank_b = next_rank(in_b);
        if (rank_a != rank_b) {
            return rank_a < rank_b;
        }
    }
    return in_a == end_a && in_b != end_b;
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

std::uint64_t CanonicalJson::MemberOrder::prefix_of_plain(const char* eight, std::size_t name_size) noexcept {
    std::uint64_t prefix = 0;
    std::memcpy(&prefix, eight, sizeof prefix);
    if constexpr (std::endian::native == std::endian::little) {
        prefix = __builtin_bswap64(prefix);
    }
    constexpr std::uint64_t all = ~std::uint64_t{0};
    return name_size >= sizeof prefix ? prefix : prefix & ~(all >> 8 * name_size);
}

std::uint64_t CanonicalJson::MemberOrder::prefix_of(std::string_view name) noexcept {
    std::uint64_t prefix = 0;
    const char* in = name.data();
    const char* const end = in + name.size();
    for (std::size_t i = 0; i < sizeof prefix; ++i) {
        prefix = prefix << 8 | (in < end ? next_rank(in) : 0);
    }
    return prefix;
}

bool CanonicalJson::MemberOrder::before(const Member& a, const Member& b) const noexcept {
    if (a.prefix != b.prefix) {
        return a.prefix < b.prefix;
    }
    return a.name_is_plain && b.name_is_plain ? name_of(a) < name_of(b) : before_unescaped(name_of(a), name_of(b));
}

/// Tries the order of the object that was sorted last: records in an array have the same names mostly.
/// @return whether names_ holds the order of these members
bool CanonicalJson::MemberOrder::order_like_the_last(const Member* members, std::size_t count) const noexcept {
    const std::vector<Name>& names = target_.names_;
    if (names.size() != count) {
        return false;
    }
    bool ascending = true;
    std::uint64_t previous = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t prefix = members[names[i].member].prefix;
        ascending = ascending && (i == 0 || previous < prefix);
        previous = prefix;
    }
    return ascending;
}

/// Sorts the names of these members into names_. A merge sort, because it can stop between two merges, and its time does not
/// depend on how the names are arranged.
/// @return false when the check stopped it
bool CanonicalJson::MemberOrder::order_anew(const Member* members, std::size_t count, CancelCheck& check) {
    std::vector<Name>& names = target_.names_;
    names.clear();
    for (std::size_t i = 0; i < count; ++i) {
        names.push_back({members[i].prefix, i});
    }
    const auto comes_before = [&](const Name& a, const Name& b) {
        if (a.prefix != b.prefix) {
            (void)check.go_on_after(sizeof a.prefix);
            return a.prefix < b.prefix;
        }
        (void)check.go_on_after(std::min(members[a.member].name_size, members[b.member].name_size));
        return before(members[a.member], members[b.member]);
    };
    constexpr std::size_t first_width = 16;
    const auto at = [count](std::vector<Name>& of, std::size_t i) {
        return of.begin() + static_cast<std::ptrdiff_t>(std::min(i, count));
    };
    for (std::size_t i = 0; i < count; i += first_width) {
        std::sort(at(names, i), at(names, i + first_width), comes_before);
    }
    for (std::size_t width = first_width; width < count; width *= 2) {
        std::vector<Name>& merged = target_.merged_names_;
        merged.resize(count);
        for (std::size_t i = 0; i < count; i += 2 * width) {
            std::merge(at(names, i), at(names, i + width), at(names, i + width), at(names, i + 2 * width),
                       at(merged, i), comes_before);
            if (check.stopped()) {
                return false;
            }
        }
        names.swap(merged);
    }
    return !check.stopped();
}

CanonicalJsonError CanonicalJson::MemberOrder::sort(std::size_t first, CancelCheck& check) {
    const Member* const members = target_.open_members_.data() + first;
    const std::size_t count = target_.open_members_.size() - first;
    if (!order_like_the_last(members, count)) {
        if (!order_anew(members, count, check)) {
            return CanonicalJsonError::cancelled;
        }
        const auto same =
            std::adjacent_find(target_.names_.begin(), target_.names_.end(), [&](const Name& a, const Name& b) {
                return a.prefix == b.prefix && name_of(members[a.member]) == name_of(members[b.member]);
            });
        if (same != target_.names_.end()) {
            target_.error_offset_ = std::max(members[same[0].member].offset, members[same[1].member].offset);
            return CanonicalJsonError::duplicate_member;
        }
    }
    for (const Name& name : target_.names_) {
        target_.ordered_members_.push_back(members[name.member].text);
    }
    return CanonicalJsonError::none;
}

CanonicalJsonError CanonicalJson::write(std::string_view document, std::string& output,
                                        const CanonicalJsonOptions& options) {
    Parser parser(*this, document, options);
    CanonicalJsonError error = parser.parse();
    if (error == CanonicalJsonError::none && objects_.empty()) {
        output.assign(text_, 0, parser.size());
    } else if (error == CanonicalJsonError::none) {
        error = write_in_order(parser.size(), output, options);
    }
    keep_small_buffers();
    return error;
}

/// Copies the first `size` bytes of text_ to `output`, the members of every object in their canonical order. Moving them
/// once, here, and not when their object closes, keeps deep nesting from moving the same bytes at every level.
CanonicalJsonError CanonicalJson::write_in_order(std::size_t size, std::string& output,
                                                 const CanonicalJsonOptions& options) {
    CancelCheck check(options);
    output.resize(size + json_bytes::slack);
    const char* const text = text_.data();
    char* out = output.data();
    std::size_t begin = 0;  // what is to be copied next
    std::size_t end = size;
    std::size_t next_object = 0;
    writing_.clear();
    for (;;) {
        while (next_object < objects_.size() && objects_[next_object].members == 0 &&
               objects_[next_object].begin < end) {
            ++next_object;
        }
        const char* const before = out;
        if (next_object < objects_.size() && objects_[next_object].begin < end) {
            const std::size_t brace = objects_[next_object].begin + 1;
            out = json_bytes::copy_blocks(text + begin, brace - begin, out);
            writing_.push_back({next_object, 0, end});
        } else {
            out = json_bytes::copy_blocks(text + begin, end - begin, out);
            if (writing_.empty()) {
                output.resize(size);
                return CanonicalJsonError::none;
            }
        }
        if (!check.go_on_after(static_cast<std::size_t>(out - before))) {
            return CanonicalJsonError::cancelled;
        }
        Writing& writing = writing_.back();
        const Object& object = objects_[writing.object];
        if (writing.members_written == object.members) {
            begin = object.end - 1;  // the closing brace
            end = writing.end_of_rest;
            next_object = object.next_object;
            writing_.pop_back();
            continue;
        }
        if (writing.members_written > 0) {
            *out++ = ',';
        }
        const MemberText& member = ordered_members_[object.first_member + writing.members_written++];
        begin = member.begin;
        end = member.end;
        next_object = member.first_object;
    }
}

void CanonicalJson::keep_small_buffers() {
    const auto trim = [](auto& buffer) {
        if (buffer.capacity() * sizeof buffer[0] > kept_buffer_size) {
            buffer.clear();
            buffer.shrink_to_fit();
        }
    };
    trim(text_);
    trim(open_members_);
    trim(objects_);
    trim(ordered_members_);
    trim(names_);
    trim(merged_names_);
}

}  // namespace idempotency
