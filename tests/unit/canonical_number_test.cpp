// Numbers in canonical JSON: the text that ECMAScript gives a double.
// Run by ctest; IDEMPOTENCY_NUMBER_LINES is how much of the published sequence is checked (1000000).
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "core/canonical_json.hpp"
#include "ecmascript_numbers.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;
using idempotency::CanonicalJsonOptions;

std::string canonical(std::string_view document, const CanonicalJsonOptions& options = {}) {
    CanonicalJson canonical_json;
    std::string output;
    const CanonicalJsonError error = canonical_json.write(document, output, options);
    return error == CanonicalJsonError::none ? output : "error: " + std::string(to_string(error));
}

/// SHA-256 of the lines so far can be asked for at any time.
class Lines {
public:
    Lines() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
    void add(const std::string& line) { EVP_DigestUpdate(context_.get(), line.data(), line.size()); }
    [[nodiscard]] std::string sha256() const {
        const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> copy(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
        unsigned char value[32];
        EVP_MD_CTX_copy_ex(copy.get(), context_.get());
        EVP_DigestFinal_ex(copy.get(), value, nullptr);
        std::string text;
        for (const unsigned char byte : value) {
            constexpr std::string_view hex = "0123456789abcdef";
            text += hex[byte >> 4];
            text += hex[byte & 0x0F];
        }
        return text;
    }

private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

TEST(CanonicalNumber, FollowsThePublishedSequence) {
    const std::map<std::size_t, std::string> published = {
        {1'000, "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687"},
        {1'000'000, "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16"},
        {10'000'000, "b9f8a44a91d46813b21b9602e72f112613c91408db0b8341fb94603d9db135e0"},
        {100'000'000, "0f7dda6b0837dde083c5d6b896f7d62340c8a2415b0c7121d83145e08a755272"},
    };
    const char* const wanted = std::getenv("IDEMPOTENCY_NUMBER_LINES");
    const std::size_t lines = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1'000'000;
    idempotency::tests::EcmaScriptNumbers numbers;
    CanonicalJson canonical_json;
    std::string output;
    std::string line;
    Lines hash;
    std::size_t checked = 0;
    for (std::size_t i = 1; i <= lines; ++i) {
        const double value = numbers.next();
        // 17 digits name every double, and are seldom the shortest that do.
        char text[32];
        const char* const end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 16).ptr;
        ASSERT_EQ(canonical_json.write({text, static_cast<std::size_t>(end - text)}, output), CanonicalJsonError::none)
            << text;
        char bits[20];
        line.assign(bits, std::to_chars(bits, bits + sizeof bits, std::bit_cast<std::uint64_t>(value), 16).ptr);
        line += ',';
        line += output;
        line += '\n';
        hash.add(line);
        if (const auto point = published.find(i); point != published.end()) {
            ASSERT_EQ(hash.sha256(), point->second) << i << " lines";
            ++checked;
        }
    }
    EXPECT_GE(checked, 2U);
}

TEST(CanonicalNumber, AllSpellingsOfAValueAreOne) {
    for (const char* text :
         {"1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1.000000000000000000000000", "1000000000000000000000000e-24"}) {
        EXPECT_EQ(canonical(text), "1") << text;
    }
    for (const char* text : {"0", "-0", "0.0", "-0.0e5", "0e999999999999999999999", "-0e-400", "1e-400", "-2e-324",
                             "1e-99999999999999999999"}) {
        EXPECT_EQ(canonical(text), "0") << text;
    }
    EXPECT_NE(canonical("1"), canonical("1.0000000000000002"));
}

TEST(CanonicalNumber, PutsThePointAndTheExponentWhereECMAScriptDoes) {
    const std::map<std::string, std::string> cases = {
        {"100000000000000000000", "100000000000000000000"},
        {"1000000000000000000000", "1e+21"},
        {"123e18", "123000000000000000000"},
        {"1234e18", "1.234e+21"},
        {"0.000001", "0.000001"},
        {"0.0000001", "1e-7"},
        {"0.0000012345", "0.0000012345"},
        {"0.00000012345", "1.2345e-7"},
        {"-0.5", "-0.5"},
        {"-1.5e300", "-1.5e+300"},
        {"5.0000", "5"},
        {"120.50", "120.5"},
        {"0.05", "0.05"},
        {"1e+5", "100000"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"999999999999999", "999999999999999"},
        {"9999999999999999", "10000000000000000"},
        {"9007199254740993", "9007199254740992"},
        {"18446744073709551616", "18446744073709552000"},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(canonical(text), expected) << text;
    }
}

TEST(CanonicalNumber, RoundsLikeANearestDouble) {
    EXPECT_EQ(canonical("5e-324"), "5e-324");
    EXPECT_EQ(canonical("2.4703282292062327e-324"), "0");
    EXPECT_EQ(canonical("2.4703282292062328e-324"), "5e-324");
    EXPECT_EQ(canonical("2.2250738585072011e-308"), "2.225073858507201e-308");
    EXPECT_EQ(canonical("1.7976931348623158e308"), "1.7976931348623157e+308");
    EXPECT_EQ(canonical("1.7976931348623159e308"), "error: number beyond the range of a double");
    // Exactly between two doubles: to the even one; the smallest digit after it decides, wherever it stands.
    EXPECT_EQ(canonical("9007199254740993.0"), "9007199254740992");
    EXPECT_EQ(canonical("9007199254740993." + std::string(2000, '0') + "1"), "9007199254740994");
    EXPECT_EQ(canonical("36028797018964100"), "36028797018964100");
    EXPECT_EQ(canonical("36028797018964100." + std::string(2000, '0') + "1"), "36028797018964104");
}

TEST(CanonicalNumber, LongDigitsAndExponentsCancelOut) {
    const std::string zeros(100'000, '0');
    EXPECT_EQ(canonical("1" + zeros + "e-100000"), "1");
    EXPECT_EQ(canonical("0." + zeros + "1e100001"), "1");
    EXPECT_EQ(canonical("0." + zeros + "1e100002"), "10");
    EXPECT_EQ(canonical("1" + zeros), "error: number beyond the range of a double");
    EXPECT_EQ(canonical("0." + zeros + "1"), "0");
    EXPECT_EQ(canonical(std::string(10'000, '9')), "error: number beyond the range of a double");
    EXPECT_EQ(canonical("1e99999999999999999999999999"), "error: number beyond the range of a double");
}

TEST(CanonicalNumber, ExactKeepsDifferentValuesApart) {
    const CanonicalJsonOptions exact{.exact_numbers = true, .cancelled = nullptr};
    const std::string refused = "error: number that a double does not hold exactly";
    for (const char* text : {"9007199254740993", "-0", "-0e1", "0.10000000000000001", "1e-400", "123456789012345678",
                             "1.00000000000000000001"}) {
        EXPECT_EQ(canonical(text, exact), refused) << text;
    }
    EXPECT_EQ(canonical("1." + std::string(2000, '0') + "1", exact), refused);
    for (const char* text : {"9007199254740992", "9007199254740994", "0.1", "19.99", "1.10", "0", "0.0", "1e23",
                             "123456789012345680", "5e-324"}) {
        EXPECT_EQ(canonical(text, exact), canonical(text)) << text;
    }
    EXPECT_EQ(canonical("1e400", exact), "error: number beyond the range of a double");
}

}  // namespace
