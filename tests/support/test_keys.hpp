// Keys for tests.
// Used by every test that sends Idempotency-Key.
#pragma once

#include <chrono>
#include <random>
#include <string>

#include "core/uuid.hpp"

/// A new UUIDv7 in text form.
[[nodiscard]] inline std::string new_key() {
    thread_local std::mt19937_64 chance{std::random_device{}()};
    idempotency::Uuid key;
    for (auto& byte : key.bytes) {
        byte = static_cast<std::uint8_t>(chance());
    }
    const auto now =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    for (int i = 0; i < 6; ++i) {
        key.bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(now >> (40 - 8 * i));
    }
    key.bytes[6] = static_cast<std::uint8_t>((key.bytes[6] & 0x0F) | 0x70);
    key.bytes[8] = static_cast<std::uint8_t>((key.bytes[8] & 0x3F) | 0x80);
    return key.to_string();
}
