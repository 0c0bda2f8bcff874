// Problem documents as text, and what is read from an answer's body.
// Run by ctest.
#include "answers.hpp"

#include <gtest/gtest.h>

namespace answers = idempotency::answers;
using idempotency::Problem;
using idempotency::http::Response;

TEST(ProblemDocument, HoldsItsMembersInOrder) {
    const Problem problem{400,
                          "validation_failed",
                          "Validation failed",
                          "Two \"things\".",
                          {{"#/a", "required", "Must be there."}, {"#/b", "format", "A\tB"}},
                          {{"reason", "test"}}};
    const Response response = problem.to_response("c-1");
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.headers.get("Content-Type"), "application/problem+json");
    EXPECT_EQ(
        response.body,
        R"({"type":"about:blank","title":"Validation failed","status":400,"detail":"Two \"things\".",)"
        R"("code":"validation_failed","reason":"test","errors":[{"pointer":"#/a","code":"required",)"
        R"("detail":"Must be there."},{"pointer":"#/b","code":"format","detail":"A\tB"}],"correlation_id":"c-1"})");
}

TEST(ProblemDocument, AMemberReplacesTheOneOfItsName) {
    const Problem problem{409, "conflict", "Conflict", "First.", {}, {{"detail", "Second."}}};
    EXPECT_EQ(problem.to_response("c").body,
              R"({"type":"about:blank","title":"Conflict","status":409,"detail":"Second.","code":"conflict",)"
              R"("correlation_id":"c"})");
}

TEST(ProblemDocument, BytesThatAreNoUtf8AreReplaced) {
    const Problem problem{400, "a", "b", "\xFF", {}, {}};
    EXPECT_NE(problem.to_response("c").body.find("\"detail\":\"\xEF\xBF\xBD\""), std::string::npos);
}

TEST(AnswerToStore, TakesTheResourceFromTheOutermostId) {
    const std::string id = "01890a5d-ac96-7b7c-8f89-37c3d0a6c001";
    const auto resource = [](const std::string& body) {
        const auto answer = answers::to_store(Response::json(201, body));
        return answer && answer->resource_id ? answer->resource_id->to_string() : std::string();
    };
    EXPECT_EQ(resource(R"({"id":")" + id + R"(","a":[{"id":"x"}]})"), id);
    EXPECT_EQ(resource(R"({"a":{"id":")" + id + R"("}})"), "");
    EXPECT_EQ(resource(R"([{"id":")" + id + R"("}])"), "");
    EXPECT_EQ(resource(R"({"id":")" + id + R"(","id":7})"), "");
    EXPECT_EQ(resource(R"({"id":["")" + id + R"("]})"), "");
}

TEST(AnswerToStore, IsNothingWhenTheBodyIsNoJson) {
    for (const char* const body : {"{", "{\"a\":1}x", "{\"a\":01}", "[1e999]", "nul", "{\"a\" 1}", "\"\xFF\""}) {
        EXPECT_FALSE(answers::to_store(Response::json(200, body))) << body;
    }
    EXPECT_TRUE(answers::to_store(Response::json(200, "null")));
    EXPECT_FALSE(answers::to_store(Response::json(200, ""))->body);
}

TEST(DerivedHeaders, ETagComesFromAVersionThatIsAnInteger) {
    const auto etag = [](const std::string& body) {
        Response response = Response::json(200, body);
        answers::set_derived_headers(response, {.action = "a", .keyed = true, .etag_statuses = {200}}, std::nullopt);
        return std::string(response.headers.get("ETag").value_or(""));
    };
    EXPECT_EQ(etag(R"({"version":3})"), "\"3\"");
    EXPECT_EQ(etag(R"({"version":-3})"), "\"-3\"");
    EXPECT_EQ(etag(R"({"version":18446744073709551615})"), "\"18446744073709551615\"");
    EXPECT_EQ(etag(R"({"version":3.0})"), "");
    EXPECT_EQ(etag(R"({"version":"3"})"), "");
    EXPECT_EQ(etag(R"({"a":{"version":3}})"), "");
}

TEST(ProblemCode, IsThatOfADocumentThatHasOne) {
    EXPECT_EQ(answers::problem_code(Response::json(409, R"({"code":"conflict"})")), "conflict");
    EXPECT_EQ(answers::problem_code(Response::json(409, R"({"code":7})")), std::nullopt);
    EXPECT_EQ(answers::problem_code(Response::json(409, R"(["code"])")), std::nullopt);
    EXPECT_EQ(answers::problem_code(Response::json(409, R"({"code":"conflict")")), std::nullopt);
}
