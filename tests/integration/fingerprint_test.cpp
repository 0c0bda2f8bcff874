// The fingerprint in the server: the published vectors, and large bodies.
// Run by ctest against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "test_database.hpp"

namespace {

/// What the server says of one vector: "" when it agrees.
std::string disagreement(const Database& database, const nlohmann::json& vector) {
    const auto text = [&](const char* member) { return "'" + vector[member].get<std::string>() + "'"; };
    const std::string body = "decode(" + text("body") + ", 'hex')";
    if (database.value("SELECT encode(idempotency_fingerprint(" + text("method") + ", " + text("path") + ", " + body +
                       "), 'hex')") != vector["sha256"].get<std::string>()) {
        return "another fingerprint";
    }
    if (vector["body"].get<std::string>().empty()) {
        return "";
    }
    try {
        const std::string canonical = database.value(
            "SELECT encode(convert_to(idempotency_canonical_json(convert_from(" + body + ", 'UTF8')), 'UTF8'), 'hex')");
        return vector["canonical"].is_null()                         ? "accepted"
               : canonical == vector["canonical"].get<std::string>() ? ""
                                                                     : "another canonical form";
    } catch (const std::runtime_error& error) {
        // Text that is no UTF-8, or holds a NUL, does not even reach the function.
        const bool no_text = std::string_view(error.what()).find("invalid byte sequence for encoding \"UTF8\"") !=
                             std::string_view::npos;
        const bool as_published =
            std::string_view(error.what()).find(": " + vector["reason"].get<std::string>() + ".") !=
            std::string_view::npos;
        return vector["canonical"].is_null() && (as_published || no_text) ? "" : error.what();
    }
}

}  // namespace

TEST(ServerFingerprint, PublishedVectors) {
    const TestDatabase database;
    std::ifstream file(SOURCE_FOLDER "/tests/vectors/fingerprint.json");
    const nlohmann::json vectors = nlohmann::json::parse(file);
    ASSERT_GE(vectors.size(), 100U);
    for (const auto& vector : vectors) {
        EXPECT_EQ(disagreement(database, vector), "") << vector["name"];
    }
}

TEST(ServerFingerprint, BodyOfAHundredMegabytes) {
    const TestDatabase database;
    const std::string body = R"('[' || repeat('{"b": 1.0, "a": "0123456789"},', 3600000) || '0]')";
    EXPECT_EQ(database.value("SELECT length(" + body + ") > 100 * 1024 * 1024"), "t");
    EXPECT_EQ(
        database.value(
            "SELECT idempotency_fingerprint('POST', '/a', convert_to(" + body +
            ", 'UTF8')) ="
            " sha256(convert_to(E'POST\\n/a\\n[' || repeat('{\"a\":\"0123456789\",\"b\":1},', 3600000) || '0]', 'UTF8'))"),
        "t");
}
