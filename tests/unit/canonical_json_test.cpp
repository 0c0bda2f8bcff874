// Canonical JSON: the examples of RFC 8785, the order of members, strings, what is refused and where, and the buffers.
// Run by ctest.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/canonical_json.hpp"
#include "counted_allocations.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;

std::string canonical(std::string_view document) {
    CanonicalJson canonical_json;
    std::string output;
    const CanonicalJsonError error = canonical_json.write(document, output);
    return error == CanonicalJsonError::none ? output : "error: " + std::string(to_string(error));
}

std::size_t error_offset(std::string_view document) {
    CanonicalJson canonical_json;
    std::string output;
    EXPECT_NE(canonical_json.write(document, output), CanonicalJsonError::none) << document;
    return canonical_json.error_offset();
}

TEST(CanonicalJson, RFC8785Vectors) {
    // Section 3.2.2 and 3.2.3.
    EXPECT_EQ(canonical(R"({
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    })"),
              "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
              "\"string\":\"\xE2\x82\xAC$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
    EXPECT_EQ(
        canonical(
            R"({"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"})"),
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xC2\x80\":\"Control\",\"\xC3\xB6\":\"Latin Small Letter O With Diaeresis\","
        "\"\xE2\x82\xAC\":\"Euro Sign\",\"\xF0\x9F\x98\x80\":\"Emoji: Grinning Face\",\"\xEF\xAC\xB3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

/// Names in canonical order, escaped as a document may have them. Every pair is tried both ways round.
TEST(CanonicalJson, OrdersEveryPairOfNames) {
    const std::vector<std::pair<std::string, std::string>> names = {
        {"", ""},
        {"\\u0000", "\\u0000"},
        {"\\u0000\\u0000", "\\u0000\\u0000"},
        {"\\u0001", "\\u0001"},
        {"\\b", "\\b"},
        {"\\u0009", "\\t"},
        {"\\n", "\\n"},
        {"\\r", "\\r"},
        {"\\u001f", "\\u001f"},
        {" ", " "},
        {"!", "!"},
        {"\\u0022", "\\\""},
        {"#", "#"},
        {"0", "0"},
        {"[", "["},
        {"\\\\", "\\\\"},
        {"\\\\a", "\\\\a"},
        {"]", "]"},
        {"a", "a"},
        {"a\\u0000", "a\\u0000"},
        {"a b", "a b"},
        {"aaaaaaa", "aaaaaaa"},
        {"aaaaaaaa", "aaaaaaaa"},
        {"aaaaaaaa\\n", "aaaaaaaa\\n"},
        {"aaaaaaaaa", "aaaaaaaaa"},
        {"aaaaaaaab", "aaaaaaaab"},
        {"aaaaaaaa\\u00e9", "aaaaaaaa\xC3\xA9"},
        {"aaaaaaaa\\ud83d\\ude00", "aaaaaaaa\xF0\x9F\x98\x80"},
        {"aaaaaaaa\\ue000", "aaaaaaaa\xEE\x80\x80"},
        {"\\u007f", "\x7F"},
        {"\\u0080", "\xC2\x80"},
        {"\\u07ff", "\xDF\xBF"},
        {"\\u0800", "\xE0\xA0\x80"},
        {"\\ud7ff", "\xED\x9F\xBF"},
        {"\\ud800\\udc00", "\xF0\x90\x80\x80"},
        {"\\udbff\\udfff", "\xF4\x8F\xBF\xBF"},
        {"\\ue000", "\xEE\x80\x80"},
        {"\\uefff", "\xEE\xBF\xBF"},
        {"\\uffff", "\xEF\xBF\xBF"},
    };
    for (std::size_t i = 0; i < names.size(); ++i) {
        for (std::size_t j = i + 1; j < names.size(); ++j) {
            const std::string expected = "{\"" + names[i].second + "\":1,\"" + names[j].second + "\":2}";
            EXPECT_EQ(canonical("{\"" + names[i].first + "\":1,\"" + names[j].first + "\":2}"), expected);
            EXPECT_EQ(canonical("{\"" + names[j].first + "\":2,\"" + names[i].first + "\":1}"), expected);
            EXPECT_EQ(canonical("{\"" + names[j].second + "\":2,\"" + names[i].second + "\":1}"), expected);
        }
    }
}

TEST(CanonicalJson, OrdersObjectsInObjects) {
    EXPECT_EQ(
        canonical(
            R"({"b":{"d":[{"z":1,"y":{"b":2,"a":1}},{"a":0}],"c":2},"a":{"a":{"b":1,"a":{}}},"c":[{"b":1,"a":2}]})"),
        R"({"a":{"a":{"a":{},"b":1}},"b":{"c":2,"d":[{"y":{"a":1,"b":2},"z":1},{"a":0}]},"c":[{"a":2,"b":1}]})");
    // Records of one shape, then one of another with as many members.
    EXPECT_EQ(canonical(R"([{"b":1,"a":2},{"b":3,"a":4},{"a":5,"b":6},{"d":7,"c":8},{"c":9,"a":0}])"),
              R"([{"a":2,"b":1},{"a":4,"b":3},{"a":5,"b":6},{"c":8,"d":7},{"a":0,"c":9}])");
}

TEST(CanonicalJson, FindsDuplicatesHoweverTheyAreWritten) {
    for (const char* text : {R"({"a":1,"a":1})", R"({"a":1,"\u0061":2})", R"({"b":1,"a":1,"b":2})", R"({"":1,"":2})",
                             R"({"\n":1,"\u000A":2})", R"({"/":1,"\/":2})", R"({"\ud83d\ude00":1,"😀":2})",
                             R"({"aaaaaaaaaaaa":1,"b":2,"aaaaaaaaaaaa":3})", R"([{"b":1,"a":2},{"a":1,"a":2}])",
                             R"({"x":{"c":1,"b":1,"c":1},"y":0})"}) {
        EXPECT_EQ(canonical(text), "error: duplicate member name") << text;
    }
    EXPECT_EQ(canonical(R"({"a":{"a":{"a":1}},"b":{"a":1}})"), R"({"a":{"a":{"a":1}},"b":{"a":1}})");
}

TEST(CanonicalJson, WritesEveryControlCharacterWithItsShortestEscape) {
    const std::string expected[] = {"\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005",
                                    "\\u0006", "\\u0007", "\\b",     "\\t",     "\\n",     "\\u000b",
                                    "\\f",     "\\r",     "\\u000e", "\\u000f"};
    for (unsigned c = 0; c < 0x20; ++c) {
        constexpr std::string_view hex = "0123456789ABCDEF";
        const std::string escape = std::string("\\u00") + hex[c >> 4] + hex[c & 15];
        const std::string shortest = c < 16 ? expected[c] : std::string("\\u001") + "0123456789abcdef"[c & 15];
        EXPECT_EQ(canonical("\"" + escape + "\""), "\"" + shortest + "\"");
        EXPECT_EQ(canonical("\"a" + std::string(1, static_cast<char>(c)) + "\""), "error: not JSON") << c;
    }
}

/// Blocks of sixteen bytes are read at once: special characters at every position, and documents that end at every position.
TEST(CanonicalJson, SpecialCharactersMayStandAnywhere) {
    for (std::size_t before = 0; before < 40; ++before) {
        for (std::size_t after = 0; after < 20; ++after) {
            const std::string head = "[\"" + std::string(before, 'x');
            const std::string tail = std::string(after, 'y') + "\"]";
            EXPECT_EQ(canonical(head + "\\u00e9" + tail), head + "\xC3\xA9" + tail);
            EXPECT_EQ(canonical(head + "\xE2\x82\xAC" + tail), head + "\xE2\x82\xAC" + tail);
            EXPECT_EQ(canonical(head + "\\\"" + tail), head + "\\\"" + tail);
            EXPECT_EQ(canonical(head + "\x01" + tail), "error: not JSON");
            EXPECT_EQ(canonical(head + "\xE2\x82" + tail), "error: invalid UTF-8");
        }
        EXPECT_EQ(canonical("[" + std::string(before, ' ') + "1" + std::string(before, '\n') + ",\t2]"), "[1,2]");
        EXPECT_EQ(canonical("\"" + std::string(before, 'x')), "error: not JSON");
    }
}

TEST(CanonicalJson, AcceptsUtf8AndNothingElse) {
    for (const char* text : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF",
                             "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        const std::string document = std::string("\"") + text + "\"";
        EXPECT_EQ(canonical(document), document);
    }
    for (const char* text : {"\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                             "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF",
                             "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xE2(\xA1", "\xC3\xC3"}) {
        EXPECT_EQ(canonical(std::string("\"") + text + "\""), "error: invalid UTF-8") << text;
    }
    // Outside of strings JSON has ASCII only.
    EXPECT_EQ(canonical("\xEF\xBB\xBF{}"), "error: not JSON");
    EXPECT_EQ(canonical("[1,\xFF]"), "error: not JSON");
}

TEST(CanonicalJson, EveryPrefixOfADocumentIsRefused) {
    const std::string document =
        R"({"k\u00e9y":[1.5e3,-0.25,true,false,null,"\ud83d\ude00\n",{"b":{},"a":[]}],"é":"x"})";
    ASSERT_NE(canonical(document).substr(0, 6), "error:");
    for (std::size_t size = 0; size < document.size(); ++size) {
        // A copy of its own, so that reading beyond its end is seen by the address sanitizer.
        const std::vector<char> prefix(document.begin(), document.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(canonical({prefix.data(), prefix.size()}).substr(0, 6), "error:") << size;
    }
}

TEST(CanonicalJson, TellsWhereTheErrorIs) {
    EXPECT_EQ(error_offset(""), 0U);
    EXPECT_EQ(error_offset("[1, x]"), 4U);
    EXPECT_EQ(error_offset("{} x"), 3U);
    EXPECT_EQ(error_offset("[1e999]"), 1U);
    EXPECT_EQ(error_offset(R"({"a":1,"b":2,"\u0061":3})"), 13U);
    EXPECT_EQ(error_offset(R"(["ab\ud800"])"), 4U);
    EXPECT_EQ(error_offset("\"abc\xFF\""), 4U);
    EXPECT_EQ(error_offset(std::string(1001, '[')), 1000U);
}

TEST(CanonicalJson, ItsOutputIsAFixedPoint) {
    for (const char* text : {R"({"b":[1.0,{"d":"\u00e9","c":"\/"}],"a":1e30})",
                             "[1e-7,0.000001,1e21,123456789012345680000]", R"("\u0000\u001f\"\\")"}) {
        const std::string once = canonical(text);
        EXPECT_EQ(canonical(once), once);
    }
}

TEST(CanonicalJson, OneObjectServesManyDocuments) {
    CanonicalJson canonical_json;
    std::string output;
    EXPECT_EQ(canonical_json.write(R"({"b":1,"a":{"d":1,"c":2}})", output), CanonicalJsonError::none);
    EXPECT_EQ(output, R"({"a":{"c":2,"d":1},"b":1})");
    EXPECT_EQ(canonical_json.write(R"([[[{"b":1,"a":)", output), CanonicalJsonError::not_json);
    EXPECT_EQ(canonical_json.write("7", output), CanonicalJsonError::none);
    EXPECT_EQ(output, "7");
    EXPECT_EQ(canonical_json.write(R"({"b":1,"a":1,"b":1})", output), CanonicalJsonError::duplicate_member);
    EXPECT_EQ(canonical_json.write(R"({"b":2,"a":{"a":1}})", output), CanonicalJsonError::none);
    EXPECT_EQ(output, R"({"a":{"a":1},"b":2})");
}

std::string records(std::size_t count) {
    std::string document = "[";
    for (std::size_t i = 0; i < count; ++i) {
        document += R"({"sku":"A-1","quantity":2,"unit_price":19.990,"name":"caf\u00e9"},)";
    }
    document.back() = ']';
    return document;
}

TEST(CanonicalJson, DoesNotAllocateForEveryMember) {
    const auto allocations_of = [](const std::string& document) {
        CanonicalJson canonical_json;
        std::string output;
        const std::size_t before = idempotency::tests::allocations();
        EXPECT_EQ(canonical_json.write(document, output), CanonicalJsonError::none);
        const std::size_t first = idempotency::tests::allocations() - before;
        EXPECT_EQ(canonical_json.write(document, output), CanonicalJsonError::none);
        EXPECT_EQ(idempotency::tests::allocations() - before, first) << "the second time there are buffers";
        return first;
    };
    const std::string small = records(10);
    const std::string large = records(1000);
    // Buffers double, so that a hundred times as many members cost a few allocations more.
    EXPECT_LE(allocations_of(large), allocations_of(small) + 20);
}

}  // namespace
