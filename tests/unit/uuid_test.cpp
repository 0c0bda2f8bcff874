// UUIDs and the Idempotency-Key value: one key however it is written, and what is none.
// Run by ctest.
#include <gtest/gtest.h>

#include <string>

#include "core/uuid.hpp"

namespace {

using idempotency::parse_key;
using idempotency::Uuid;

constexpr const char* key = "01890a5d-ac96-7b7c-8f89-37c3d0a6c0ff";

TEST(Key, OneHoweverItIsWritten) {
    const std::string lower = key;
    for (const std::string& text : {lower, std::string("01890A5D-AC96-7B7C-8F89-37C3D0A6C0FF"), "\"" + lower + "\"",
                                    "  " + lower, lower + "\t ", " \"" + lower + "\" "}) {
        const auto parsed = parse_key(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(parsed->to_string(), lower);
    }
}

TEST(Key, NothingElseIsOne) {
    const std::string uuid = key;
    for (const std::string& text : {std::string(),
                                    std::string("  "),
                                    "{" + uuid + "}",
                                    "urn:uuid:" + uuid,
                                    std::string("01890a5dac967b7c8f8937c3d0a6c0ff"),
                                    std::string("00000000-0000-0000-0000-000000000000"),
                                    std::string("ffffffff-ffff-ffff-ffff-ffffffffffff"),
                                    std::string("01890a5d-ac96-4b7c-8f89-37c3d0a6c0ff"),
                                    uuid + ", " + uuid,
                                    uuid + "," + uuid,
                                    uuid + ";a=1",
                                    "\"" + uuid + "\";a=1",
                                    "\"" + uuid,
                                    uuid + "\"",
                                    "'" + uuid + "'",
                                    "\"\"" + uuid + "\"\"",
                                    uuid + std::string(1, '\0'),
                                    "\n" + uuid,
                                    "\" " + uuid + "\"",
                                    std::string("01890a5d-ac96-7b7c-0f89-37c3d0a6c0ff"),
                                    std::string("0189-0a5dac96-7b7c-8f89-37c3d0a6c0ff"),
                                    std::string("01890a5d ac96 7b7c 8f89 37c3d0a6c0ff")}) {
        EXPECT_FALSE(parse_key(text)) << text;
    }
}

TEST(Uuid, EveryCharacterIsChecked) {
    const std::string good = key;
    for (std::size_t i = 0; i < good.size(); ++i) {
        for (int c = 0; c < 256; ++c) {
            std::string text = good;
            text[i] = static_cast<char>(c);
            const bool is_hyphen = good[i] == '-';
            const bool fits =
                is_hyphen ? c == '-' : std::string("0123456789abcdefABCDEF").find(text[i]) != std::string::npos;
            ASSERT_EQ(Uuid::parse(text).has_value(), fits) << i << " " << c;
        }
    }
}

TEST(Uuid, OrdersAsItsTextDoes) {
    const auto low = Uuid::parse("01890a5d-ac96-7b7c-8f89-37c3d0a6c000");
    const auto high = Uuid::parse("01890a5d-ac97-7000-8000-000000000000");
    ASSERT_TRUE(low && high);
    EXPECT_LT(*low, *high);
    EXPECT_EQ(*low, *Uuid::parse(low->to_string()));
}

TEST(Uuid, KnowsVersionAndVariant) {
    EXPECT_EQ(Uuid::parse("c232ab00-9414-11ec-b3c8-9f6bdeced846")->version(), 1);
    EXPECT_TRUE(Uuid::parse("c232ab00-9414-11ec-b3c8-9f6bdeced846")->is_rfc9562());
    EXPECT_FALSE(Uuid{}.is_rfc9562());
    EXPECT_EQ(Uuid{}.version(), 0);
}

}  // namespace
