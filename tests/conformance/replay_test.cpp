// Conformance: a repeat gets the stored answer, and there is one effect.
// Run by tests/conformance/run; needs a server that speaks the orders contract.
#include "conformance_test.hpp"

using Replay = ConformanceTest;

TEST_F(Replay, CreateAnswers201WithETagAndReplays) {
    const std::string key = new_key();
    const Result first = create(key);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->status, 201);
    const json made = json::parse(first->body);
    EXPECT_EQ(made["version"], 1);
    EXPECT_EQ(made["sku"], sku);
    EXPECT_EQ(made["quantity"], 2);
    EXPECT_EQ(first->get_header_value("ETag"), "\"1\"");
    expect_same_answer(first, create(key));
    EXPECT_EQ(effects(), 1);
}

TEST_F(Replay, OtherSpellingsOfTheBodyAndTheKeyAreTheSameRequest) {
    const std::string key = new_key();
    const Result first = create(key);
    std::string upper = key;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    for (const std::string& spelling : {key, '"' + key + '"', upper}) {
        expect_same_answer(first,
                           create(spelling, "", R"( { "quantity" : 2.0, "sku":"\u0074)" + sku.substr(1) + "\" }"));
        expect_same_answer(first, create(spelling, "", R"({"sku":")" + sku + R"(","quantity":20e-1})"));
    }
    EXPECT_EQ(effects(), 1);
}

TEST_F(Replay, ReplaceNeedsTheVersionAndReplays) {
    const std::string id = id_of(create(new_key()));
    expect_problem(put(id, new_key(), ""), 428, "precondition_required");
    expect_problem(put(id, new_key(), "1"), 400, "validation_failed");
    const std::string key = new_key();
    const Result first = put(id, key, "\"1\"");
    EXPECT_EQ(first->status, 200);
    EXPECT_EQ(json::parse(first->body)["version"], 2);
    EXPECT_EQ(first->get_header_value("ETag"), "\"2\"");
    expect_same_answer(first, put(id, key, "\"1\""));
    expect_problem(put(new_key(), new_key(), "\"1\""), 404, "not_found");
    expect_problem(put("no-uuid", new_key(), "\"1\""), 404, "not_found");
}

TEST_F(Replay, DeleteAnswers204WithoutBodyAndReplays) {
    const std::string id = id_of(create(new_key()));
    const std::string key = new_key();
    const Result first = remove(id, key);
    EXPECT_EQ(first->status, 204);
    EXPECT_EQ(first->body, "");
    EXPECT_FALSE(first->has_header("Content-Type"));
    expect_same_answer(first, remove(id, key));
    EXPECT_EQ(effects(), 0);
}

TEST_F(Replay, ChunkedBodyHasTheSameFingerprint) {
    const std::string key = new_key();
    const Result first = create(key);
    httplib::Client chunking = client();
    const std::string body = order();
    const Result replay = chunking.Post(
        "/api/v1/orders", headers(key),
        [&](std::size_t, httplib::DataSink& sink) {
            sink.write(body.data(), 13);
            sink.write(body.data() + 13, body.size() - 13);
            sink.done();
            return true;
        },
        "application/json");
    expect_same_answer(first, replay);
}

TEST_F(Replay, HasTheCorrelationIdOfItsOwnRequest) {
    const std::string key = new_key();
    for (const char* id : {"abc-123", "def-456"}) {
        const Result result = post("/api/v1/orders", headers(key, {{"Correlation-Id", id}}), order());
        EXPECT_EQ(result->get_header_value("Correlation-Id"), id);
    }
}

TEST_F(Replay, KeysOfTwoPrincipalsAreApart) {
    const std::string key = new_key();
    EXPECT_EQ(create(key)->status, 201);
    std::swap(principal, other_principal);
    const Result theirs = create(key);
    EXPECT_EQ(theirs->status, 201);
    EXPECT_FALSE(is_replay(theirs));
    EXPECT_EQ(effects(), 1);
}
