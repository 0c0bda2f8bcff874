// Reading and making server values.
// Called by the subjects through arguments.hpp.
#include "pg/arguments.hpp"

#include <cstring>

#include "pg/compat.hpp"

namespace pg {
namespace {

std::string_view view(varlena* value) noexcept {
    return {VARDATA_ANY(value), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(value))};
}

}  // namespace

void Arguments::require(int index, const char* name) const {
    if (is_null(index)) {
        fail(ERRCODE_NULL_VALUE_NOT_ALLOWED, std::string(name) + " must not be null",
             "The function needs a value for the argument \"" + std::string(name) + "\".",
             "Pass a value, for example by name: " + std::string(name) + " => ...");
    }
}

idempotency::Uuid Arguments::uuid(int index, const char* name) const {
    require(index, name);
    return *optional_uuid(index);
}

std::optional<idempotency::Uuid> Arguments::optional_uuid(int index) const noexcept {
    if (is_null(index)) {
        return std::nullopt;
    }
    idempotency::Uuid uuid;
    std::memcpy(uuid.bytes.data(), DatumGetUUIDP(datum(index))->data, uuid.bytes.size());
    return uuid;
}

std::string_view Arguments::bytes(int index, const char* name) const {
    require(index, name);
    return bytes_or_empty(index);
}

std::string_view Arguments::bytes_or_empty(int index) const {
    if (is_null(index)) {
        return {};
    }
    return view(call([&] { return PG_DETOAST_DATUM_PACKED(datum(index)); }));
}

int Arguments::integer(int index, const char* name) const {
    require(index, name);
    return DatumGetInt32(datum(index));
}

Datum text_datum(std::string_view text) {
    return call([&] {
        const MemoryContext caller = MemoryContextSwitchTo(entry_memory());
        const Datum value = PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
        MemoryContextSwitchTo(caller);
        return value;
    });
}

Datum bytea_datum(std::string_view bytes) {
    return text_datum(bytes);  // bytea and text have the same representation
}

}  // namespace pg
