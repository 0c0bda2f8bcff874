// Reads the arguments of an SQL function into plain C++ values, and refuses those that make no sense.
// Used by the subjects; each function names the argument as the SQL declaration does.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/fingerprint.hpp"
#include "core/uuid.hpp"
#include "pg/boundary.hpp"

namespace pg {

/// The arguments of one call. A NULL where a value is needed raises 22004 with the argument's name.
class Arguments {
public:
    explicit Arguments(FunctionCallInfo fcinfo) noexcept : fcinfo_(fcinfo) {}

    [[nodiscard]] bool is_null(int index) const noexcept { return fcinfo_->args[index].isnull; }
    [[nodiscard]] Datum datum(int index) const noexcept { return fcinfo_->args[index].value; }

    [[nodiscard]] idempotency::Uuid uuid(int index, const char* name) const;
    [[nodiscard]] std::optional<idempotency::Uuid> optional_uuid(int index) const noexcept;
    /// The bytes of a text or bytea argument; valid until the entry point returns.
    [[nodiscard]] std::string_view bytes(int index, const char* name) const;
    /// As bytes, empty for NULL.
    [[nodiscard]] std::string_view bytes_or_empty(int index) const;
    [[nodiscard]] int integer(int index, const char* name) const;

    [[nodiscard]] FunctionCallInfo fcinfo() const noexcept { return fcinfo_; }

private:
    void require(int index, const char* name) const;

    FunctionCallInfo fcinfo_;
};

/// A UUID as the server's type. Points into `uuid`, which must outlive the use.
inline Datum uuid_datum(const idempotency::Uuid& uuid) noexcept {
    return PointerGetDatum(const_cast<std::uint8_t*>(uuid.bytes.data()));
}

/// Text as a server value, in the entry memory.
[[nodiscard]] Datum text_datum(std::string_view text);

/// Bytes as a bytea value, in the entry memory.
[[nodiscard]] Datum bytea_datum(std::string_view bytes);

}  // namespace pg
