// Documents made to be slow or to break a parser: answers, quickly, and no more work than n log n.
// Run by ctest.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>

#include "core/canonical_json.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;
using idempotency::CanonicalJsonOptions;

/// How often `cancelled` was asked: once in about 64 KiB of bytes read, compared or written, so that it counts the work.
std::size_t asked = 0;
std::size_t stop_at = 0;

bool count_and_stop() { return ++asked == stop_at; }

constexpr CanonicalJsonOptions counting{.exact_numbers = false, .cancelled = count_and_stop};
constexpr std::size_t bytes_a_question = 64 * 1024;

CanonicalJsonError write_counted(const std::string& document, std::string& output, std::size_t stop = 0) {
    CanonicalJson canonical_json;
    asked = 0;
    stop_at = stop;
    return canonical_json.write(document, output, counting);
}

/// Members with names of `size` bytes that differ at their end, `count` of them, in an order far from the canonical one.
std::string members_with_one_prefix(std::size_t count, std::size_t size) {
    std::string document = "{";
    for (std::size_t i = 0; i < count; ++i) {
        const std::string number = std::to_string(i * 7919 % count);
        document += (i == 0 ? "\"" : ",\"") + std::string(size - number.size(), 'a') + number + "\":0";
    }
    return document + "}";
}

TEST(CanonicalJsonHostile, UnsortedLevelsAroundABigStringMoveItOnce) {
    constexpr std::size_t levels = idempotency::canonical_json_max_depth;
    std::string document;
    std::string expected;
    for (std::size_t i = 0; i < levels; ++i) {
        document += "{\"b\":0,\"a\":";
        expected += "{\"a\":";
    }
    const std::string big = "\"" + std::string(4'000'000, 'x') + "\"";
    document += big;
    expected += big;
    for (std::size_t i = 0; i < levels; ++i) {
        document += "}";
        expected += ",\"b\":0}";
    }
    std::string output;
    ASSERT_EQ(write_counted(document, output), CanonicalJsonError::none);
    EXPECT_EQ(output, expected);
    EXPECT_LE(asked * bytes_a_question, 4 * document.size());
}

TEST(CanonicalJsonHostile, ManyMembersWithOneLongPrefixSortInNLogN) {
    for (const std::size_t count : {10'000U, 100'000U}) {
        const std::string document = members_with_one_prefix(count, 100);
        std::string output;
        ASSERT_EQ(write_counted(document, output), CanonicalJsonError::none);
        EXPECT_EQ(output.size(), document.size());
        const auto log_n = static_cast<std::size_t>(std::bit_width(count));
        EXPECT_LE(asked * bytes_a_question, 3 * document.size() * log_n) << count;
    }
}

TEST(CanonicalJsonHostile, ManyDuplicatesAtTheEndAreFound) {
    constexpr std::size_t count = 200'000;
    std::string document = "{";
    for (std::size_t i = 0; i < count; ++i) {
        document += "\"" + std::to_string(count - i) + "\":0,";
    }
    for (std::size_t i = 0; i < count; ++i) {
        document += "\"same\":0,";
    }
    document.back() = '}';
    std::string output;
    EXPECT_EQ(write_counted(document, output), CanonicalJsonError::duplicate_member);
    EXPECT_LE(asked * bytes_a_question, 60 * document.size());
}

TEST(CanonicalJsonHostile, BracketsAreCountedNotNested) {
    std::string output;
    EXPECT_EQ(write_counted(std::string(100'000, '['), output), CanonicalJsonError::nesting_too_deep);
    EXPECT_EQ(write_counted(std::string(100'000, '{'), output), CanonicalJsonError::not_json);
    std::string objects;
    for (int i = 0; i < 100'000; ++i) {
        objects += "{\"a\":";
    }
    EXPECT_EQ(write_counted(objects, output), CanonicalJsonError::nesting_too_deep);
    std::string siblings = "[";
    for (int i = 0; i < 100'000; ++i) {
        siblings += "[{}],";
    }
    siblings.back() = ']';
    EXPECT_EQ(write_counted(siblings, output), CanonicalJsonError::none);
    EXPECT_EQ(output, siblings);
}

TEST(CanonicalJsonHostile, ANumberOfTenMegabytesIsAnswered) {
    std::string output;
    EXPECT_EQ(write_counted(std::string(10'000'000, '7'), output), CanonicalJsonError::number_out_of_range);
    EXPECT_EQ(write_counted("0." + std::string(10'000'000, '3'), output), CanonicalJsonError::none);
    EXPECT_EQ(output, "0.3333333333333333");
}

TEST(CanonicalJsonHostile, NumbersThatGrowHaveRoom) {
    std::string document = "[";
    std::string expected = "[";
    for (int i = 0; i < 100'000; ++i) {
        document += "1e20,";
        expected += "100000000000000000000,";
    }
    document.back() = ']';
    expected.back() = ']';
    std::string output;
    ASSERT_EQ(write_counted(document, output), CanonicalJsonError::none);
    EXPECT_EQ(output, expected);
}

TEST(CanonicalJsonHostile, StopsWhereverItIsAsked) {
    std::string escapes = "[\"";
    for (int i = 0; i < 100'000; ++i) {
        escapes += "\\u00e9\xC3\xA9";
    }
    escapes += "\"]";
    for (const std::string& document : {members_with_one_prefix(10'000, 100), escapes}) {
        std::string output;
        ASSERT_EQ(write_counted(document, output), CanonicalJsonError::none);
        const std::size_t all = asked;
        ASSERT_GT(all, 5U);
        for (std::size_t stop = 1; stop <= all; ++stop) {
            ASSERT_EQ(write_counted(document, output, stop), CanonicalJsonError::cancelled) << stop << " of " << all;
            ASSERT_EQ(asked, stop);
        }
    }
}

}  // namespace
