// libFuzzer target: the key parser never crashes, and what it accepts is one key in every spelling.
// Called by tests/fuzz/run.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "core/uuid.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::make_unique<char[]>(size);
    if (size > 0) {
        std::memcpy(bytes.get(), data, size);
    }
    const std::string_view value(bytes.get(), size);
    const auto uuid = idempotency::Uuid::parse(value);
    if (uuid && idempotency::Uuid::parse(uuid->to_string()) != uuid) {
        std::abort();
    }
    const auto key = idempotency::parse_key(value);
    if (key && (key->version() != 7 || !key->is_rfc9562() ||
                idempotency::parse_key("\t\"" + key->to_string() + "\" ") != key)) {
        std::abort();
    }
    return 0;
}
