// The fingerprint: the published vectors, the keyed form, and what is one request and what is another.
// Run by ctest; VECTORS_FILE is the file with the vectors.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/fingerprint.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;
using idempotency::Fingerprint;
using idempotency::Fingerprinter;

std::string to_hex(std::string_view bytes) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        text += hex[static_cast<unsigned char>(c) >> 4];
        text += hex[static_cast<unsigned char>(c) & 0x0F];
    }
    return text;
}

std::string to_hex(const std::optional<Fingerprint>& value) {
    return value ? to_hex({reinterpret_cast<const char*>(value->data()), value->size()}) : "none";
}

std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

TEST(Fingerprint, PublishedVectors) {
    std::ifstream file(VECTORS_FILE);
    const nlohmann::json vectors = nlohmann::json::parse(file);
    ASSERT_GE(vectors.size(), 100U);
    Fingerprinter fingerprinter;
    CanonicalJson canonical_json;
    for (const auto& vector : vectors) {
        SCOPED_TRACE(vector["name"]);
        const std::string body = from_hex(vector["body"]);
        EXPECT_EQ(
            to_hex(fingerprinter.compute(vector["method"].get<std::string>(), vector["path"].get<std::string>(), body)),
            vector["sha256"].get<std::string>());
        EXPECT_EQ(to_string(fingerprinter.body_error()), vector["reason"].get<std::string>());
        std::string canonical;
        if (!body.empty()) {
            EXPECT_EQ(to_string(canonical_json.write(body, canonical)), vector["reason"].get<std::string>());
        }
        if (!vector["canonical"].is_null()) {
            EXPECT_EQ(to_hex(canonical), vector["canonical"].get<std::string>());
        }
    }
}

TEST(Fingerprint, OneForEverySpellingAndAnotherForEveryOtherRequest) {
    Fingerprinter fingerprinter;
    const auto of = [&](std::string_view method, std::string_view path, std::string_view body) {
        return to_hex(fingerprinter.compute(method, path, body));
    };
    const std::string first = of("POST", "/orders", R"({"a":1,"b":"é"})");
    EXPECT_EQ(of("post", "/orders", R"({ "b" : "\u00e9", "a" : 1.0 })"), first);
    EXPECT_EQ(of("POST", "/orders", R"({"\u0062":"\u00E9","a":10e-1})"), first);
    EXPECT_NE(of("PUT", "/orders", R"({"a":1,"b":"é"})"), first);
    EXPECT_NE(of("POST", "/orders/", R"({"a":1,"b":"é"})"), first);
    EXPECT_NE(of("POST", "/orders", R"({"a":2,"b":"é"})"), first);
    EXPECT_NE(of("POST", "/orders", R"({"a":1,"b":"é","c":null})"), first);
}

TEST(Fingerprint, RawBytesWhenThereIsNoCanonicalForm) {
    Fingerprinter fingerprinter;
    const auto first = fingerprinter.compute("POST", "/a", R"({"a":1,"\u0061":2})");
    EXPECT_EQ(fingerprinter.body_error(), CanonicalJsonError::duplicate_member);
    EXPECT_NE(first, fingerprinter.compute("POST", "/a", R"({"a":1,"a":2})"));
    EXPECT_NE(first, fingerprinter.compute("POST", "/a", R"({"a":1,"\u0061":2} )"));
    EXPECT_EQ(first, fingerprinter.compute("POST", "/a", R"({"a":1,"\u0061":2})"));
}

TEST(Fingerprint, ExactNumbersKeepAmountsApart) {
    Fingerprinter fingerprinter;
    const idempotency::CanonicalJsonOptions exact{.exact_numbers = true, .cancelled = nullptr};
    const char* const one = R"({"amount":9007199254740992})";
    const char* const other = R"({"amount":9007199254740993})";
    EXPECT_EQ(fingerprinter.compute("POST", "/a", one), fingerprinter.compute("POST", "/a", other));
    const auto of_one = fingerprinter.compute("POST", "/a", one, exact);
    EXPECT_EQ(fingerprinter.body_error(), CanonicalJsonError::none);
    EXPECT_NE(fingerprinter.compute("POST", "/a", other, exact), of_one);
    EXPECT_EQ(fingerprinter.body_error(), CanonicalJsonError::number_not_exact);
    EXPECT_EQ(fingerprinter.compute("POST", "/a", R"({"amount":19.90})", exact),
              fingerprinter.compute("POST", "/a", R"({"amount":19.9})", exact));
}

TEST(Fingerprint, KeyedIsHmacSha256) {
    Fingerprinter fingerprinter;
    const std::string message = "POST\n/a\n{\"a\":1,\"b\":2}";
    for (const std::size_t size : {0U, 1U, 32U, 63U, 64U, 65U, 200U}) {
        const std::string key(size, 'k');
        Fingerprint expected;
        ASSERT_NE(
            HMAC(EVP_sha256(), key.data(), static_cast<int>(size),
                 reinterpret_cast<const unsigned char*>(message.data()), message.size(), expected.data(), nullptr),
            nullptr);
        EXPECT_EQ(fingerprinter.compute_keyed(key, "post", "/a", R"({"b":2,"a":1})"), expected) << size;
    }
    EXPECT_NE(fingerprinter.compute_keyed("one", "POST", "/a", "{}"),
              fingerprinter.compute_keyed("two", "POST", "/a", "{}"));
    EXPECT_NE(fingerprinter.compute_keyed("", "POST", "/a", "{}"), fingerprinter.compute("POST", "/a", "{}"));
}

TEST(Fingerprint, NothingWhenCancelled) {
    Fingerprinter fingerprinter;
    const idempotency::CanonicalJsonOptions options{.exact_numbers = false, .cancelled = [] { return true; }};
    EXPECT_FALSE(fingerprinter.compute("POST", "/a", "{}", options));
    EXPECT_EQ(fingerprinter.body_error(), CanonicalJsonError::cancelled);
    EXPECT_FALSE(fingerprinter.compute_keyed("key", "POST", "/a", "{}", options));
    EXPECT_TRUE(fingerprinter.compute("POST", "/a", "", options));
    EXPECT_EQ(fingerprinter.body_error(), CanonicalJsonError::none);
}

}  // namespace
