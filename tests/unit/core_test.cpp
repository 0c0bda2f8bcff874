// The core: UUIDs, keys, canonical JSON and the fingerprint's definition.
// Run by ctest; needs nothing.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "core/canonical_json.hpp"
#include "core/final_status.hpp"
#include "core/fingerprint.hpp"
#include "core/uuid.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;

std::string canonical(std::string_view document) {
    CanonicalJson canonical_json;
    std::string output;
    const CanonicalJsonError error = canonical_json.write(document, output);
    return error == CanonicalJsonError::none ? output : "error: " + std::string(to_string(error));
}

idempotency::Fingerprint sha256(const std::string& text) {
    idempotency::Fingerprint value;
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), value.data());
    return value;
}

TEST(Fingerprint, Definition) {
    idempotency::Fingerprinter fingerprinter;
    EXPECT_EQ(fingerprinter.compute("post", "/api/v1/orders", R"({"b":1.0,"a":"\u0041"})"),
              sha256("POST\n/api/v1/orders\n{\"a\":\"A\",\"b\":1}"));
    EXPECT_EQ(fingerprinter.compute("DELETE", "/api/v1/orders/1", ""), sha256("DELETE\n/api/v1/orders/1\n"));
    EXPECT_EQ(fingerprinter.compute("POST", "/a", "not json"), sha256("POST\n/a\nnot json"));
    EXPECT_EQ(fingerprinter.body_error(), CanonicalJsonError::not_json);
}

TEST(CanonicalJson, SortsMembersByUtf16CodeUnits) {
    EXPECT_EQ(canonical("{\"\xEF\xAC\xB3\":1,\"\xF0\x9F\x98\x82\":2,\"\\u20ac\":3,\"1\":4,\"\\r\":5}"),
              "{\"\\r\":5,\"1\":4,\"\xE2\x82\xAC\":3,\"\xF0\x9F\x98\x82\":2,\"\xEF\xAC\xB3\":1}");
    EXPECT_EQ(canonical(R"({"ab":1,"a":2,"":3})"), R"({"":3,"a":2,"ab":1})");
}

TEST(CanonicalJson, WritesNumbersAsECMAScriptDoes) {
    EXPECT_EQ(canonical("[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001]"),
              "[333333333.3333333,1e+30,4.5,0.002,1e-27]");
    EXPECT_EQ(canonical("[-0,0.0,-0e5,1e21,1e20,123456789012345680000,1e-6,1e-7,5e-324,1.7976931348623157e308]"),
              "[0,0,0,1e+21,100000000000000000000,123456789012345680000,0.000001,1e-7,5e-324,1.7976931348623157e+308]");
    EXPECT_EQ(canonical("[9007199254740993,1e-400,2.5e-324,100,1.10,-12.0e1]"),
              "[9007199254740992,0,5e-324,100,1.1,-120]");
}

TEST(CanonicalJson, WritesStringsWithTheFewestEscapes) {
    EXPECT_EQ(canonical(R"("\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u001f\b\f\t\r")"),
              "\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\\u001f\\b\\f\\t\\r\"");
    EXPECT_EQ(canonical(R"("\ud83d\ude02\u007f")"), "\"\xF0\x9F\x98\x82\x7F\"");
}

TEST(CanonicalJson, KeepsScalarsAndEmptyContainers) {
    EXPECT_EQ(canonical(" \t\r\n null "), "null");
    EXPECT_EQ(canonical("[[],{},[{}],{\"a\":[]}]"), "[[],{},[{}],{\"a\":[]}]");
    EXPECT_EQ(canonical("[ 1 , [ 2 , { \"b\" : [ 3 ] , \"a\" : { } } ] , 4 ]"), "[1,[2,{\"a\":{},\"b\":[3]}],4]");
}

TEST(CanonicalJson, RefusesEachWithItsReason) {
    for (const char* text : {"",
                             " ",
                             "{",
                             "[1,]",
                             "{\"a\":1,}",
                             "[1 2]",
                             "01",
                             "1.",
                             ".5",
                             "+1",
                             "1e",
                             "-",
                             "nul",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"a",
                             "\"\t\"",
                             "{} x",
                             "\xEF\xBB\xBF{}",
                             "{a:1}",
                             "'a'",
                             "[1]]",
                             "}",
                             ",",
                             "{\"a\"}",
                             "NaN",
                             "\"\\"}) {
        EXPECT_EQ(canonical(text), "error: not JSON") << text;
    }
    EXPECT_EQ(canonical(std::string_view("1\0", 2)), "error: not JSON");
    EXPECT_EQ(canonical(R"({"a":1,"b":2,"\u0061":3})"), "error: duplicate member name");
    EXPECT_EQ(canonical(R"([{"a":{"x":1,"x":1}}])"), "error: duplicate member name");
    for (const char* text : {"\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\xE2\x82\"", "\"\x80\"",
                             "\"\xFF\"", "\"\xF0\x80\x80\x80\""}) {
        EXPECT_EQ(canonical(text), "error: invalid UTF-8") << text;
    }
    for (const char* text : {R"("\ud800")", R"("\udc00\ud800")", R"("\ud800x")", R"("\ud800\u0041")"}) {
        EXPECT_EQ(canonical(text), "error: lone surrogate") << text;
    }
    EXPECT_EQ(canonical("[1e400]"), "error: number beyond the range of a double");
    EXPECT_EQ(canonical(std::string(400, '9')), "error: number beyond the range of a double");
    EXPECT_EQ(canonical(std::string(100'000, '[')), "error: nesting too deep");
}

TEST(CanonicalJson, LimitsNestingAndNotMore) {
    const std::size_t depth = idempotency::canonical_json_max_depth;
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_EQ(canonical(deep), deep);
    EXPECT_EQ(canonical('[' + deep + ']'), "error: nesting too deep");
}

TEST(CanonicalJson, ExactNumbersAreAnOption) {
    CanonicalJson canonical_json;
    std::string output;
    const idempotency::CanonicalJsonOptions exact{.exact_numbers = true, .cancelled = nullptr};
    for (const char* text : {"9007199254740993", "-0", "-0.0", "0.1000000000000000055511151231257827", "1e-400"}) {
        EXPECT_EQ(canonical_json.write(text, output, exact), CanonicalJsonError::number_not_exact) << text;
    }
    for (const char* text : {"9007199254740992", "0.1", "1.10", "0", "5e-324", "1e21", "123456789012345680000"}) {
        EXPECT_EQ(canonical_json.write(text, output, exact), CanonicalJsonError::none) << text;
    }
}

TEST(CanonicalJson, CanBeCancelled) {
    CanonicalJson canonical_json;
    std::string output;
    const idempotency::CanonicalJsonOptions options{.exact_numbers = false, .cancelled = [] { return true; }};
    EXPECT_EQ(canonical_json.write("[]", output, options), CanonicalJsonError::cancelled);
}

TEST(Uuid, ReadsAndWritesTheCanonicalForm) {
    const auto uuid = idempotency::Uuid::parse("01890A5D-ac96-7b7c-8f89-37c3d0a6c001");
    ASSERT_TRUE(uuid);
    EXPECT_EQ(uuid->to_string(), "01890a5d-ac96-7b7c-8f89-37c3d0a6c001");
    EXPECT_EQ(uuid->version(), 7);
    for (const char* text : {"", "01890a5d-ac96-7b7c-8f89-37c3d0a6c00", "01890a5d-ac96-7b7c-8f89-37c3d0a6c0011",
                             "01890a5dxac96-7b7c-8f89-37c3d0a6c001", "01890a5g-ac96-7b7c-8f89-37c3d0a6c001"}) {
        EXPECT_FALSE(idempotency::Uuid::parse(text)) << text;
    }
}

TEST(Key, IsOneUuidV7BareOrQuoted) {
    for (const char* text : {"01890a5d-ac96-7b7c-8f89-37c3d0a6c001", "\"01890A5D-AC96-7B7C-8F89-37C3D0A6C001\"",
                             " \t01890a5d-ac96-7b7c-8f89-37c3d0a6c001 "}) {
        EXPECT_TRUE(idempotency::parse_key(text)) << text;
    }
    for (const char* text : {"", "\"\"", "01890a5d-ac96-4b7c-8f89-37c3d0a6c001", "01890a5d-ac96-7b7c-cf89-37c3d0a6c001",
                             "\"01890a5d-ac96-7b7c-8f89-37c3d0a6c001", "\" 01890a5d-ac96-7b7c-8f89-37c3d0a6c001\""}) {
        EXPECT_FALSE(idempotency::parse_key(text)) << text;
    }
}

TEST(FinalStatus, IsSuccessOrOneOfTheListedErrors) {
    int final = 0;
    for (int status = 100; status < 600; ++status) {
        final += idempotency::is_success(status) || idempotency::is_final_error(status) ? 1 : 0;
    }
    EXPECT_EQ(final, 100 + 9);
    EXPECT_FALSE(idempotency::is_final_error(401));
    EXPECT_FALSE(idempotency::is_final_error(428));
    EXPECT_FALSE(idempotency::is_final_error(429));
}

}  // namespace
