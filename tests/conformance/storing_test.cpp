// Conformance: final answers are kept, others are not, and a failed request leaves no effect.
// Run by tests/conformance/run; needs a server that speaks the orders contract.
#include "conformance_test.hpp"

using Storing = ConformanceTest;

TEST_F(Storing, FinalErrorIsReplayed) {
    const std::string key = new_key();
    const std::string body = R"({"sku":"SOLD-OUT","quantity":1})";
    const Result first = create(key, "", body);
    expect_problem(first, 409, "sold_out");
    expect_same_answer(first, create(key, "", body));

    const std::string id = id_of(create(new_key()));
    EXPECT_EQ(put(id, new_key(), "\"1\"")->status, 200);
    const std::string stale = new_key();
    const Result too_late = put(id, stale, "\"1\"");
    expect_problem(too_late, 412, "precondition_failed");
    expect_same_answer(too_late, put(id, stale, "\"1\""));

    EXPECT_EQ(remove(id, new_key())->status, 204);
    const std::string again = new_key();
    const Result gone = remove(id, again);
    expect_problem(gone, 404, "not_found");
    expect_same_answer(gone, remove(id, again));
}

TEST_F(Storing, EveryFinalErrorAfterTheEffectRollsItBackAndIsReplayed) {
    for (const int status : {400, 403, 404, 409, 410, 412, 413, 415, 422}) {
        const std::string key = new_key();
        const Result first = create(key, "status=" + std::to_string(status));
        expect_problem(first, status, "demo_status");
        expect_same_answer(first, create(key));
    }
    EXPECT_EQ(effects(), 0);
}

TEST_F(Storing, StatusThatIsNotFinalIsNotKept) {
    int runs = 0;
    for (const int status : {500, 503, 429, 401, 428, 301}) {
        const std::string key = new_key();
        EXPECT_EQ(create(key, "status=" + std::to_string(status))->status, status);
        EXPECT_EQ(effects(), runs);
        const Result retry = create(key);
        EXPECT_EQ(retry->status, 201);
        EXPECT_FALSE(is_replay(retry));
        EXPECT_EQ(effects(), ++runs);
    }
}

TEST_F(Storing, PreconditionRequiredIsNotKept) {
    const std::string id = id_of(create(new_key()));
    const std::string key = new_key();
    expect_problem(put(id, key, ""), 428, "precondition_required");
    EXPECT_EQ(put(id, key, "\"1\"")->status, 200);
}

TEST_F(Storing, DatabaseConflictIsRetriedAndSucceeds) {
    const std::string key = new_key();
    const Result first = create(key, "error=once");
    EXPECT_EQ(first->status, 201);
    expect_same_answer(first, create(key));
    EXPECT_EQ(effects(), 1);
}

TEST_F(Storing, LastingConflictIs503AndNotKept) {
    for (const char* sqlstate : {"40001", "40P01", "55P03"}) {
        const std::string key = new_key();
        const Result result = create(key, "error=" + std::string(sqlstate));
        expect_problem(result, 503, "service_unavailable");
        EXPECT_NE(result->get_header_value("Retry-After"), "");
        EXPECT_EQ(effects(), 0);
    }
}

TEST_F(Storing, OneTimeSecretIsShownOnce) {
    const std::string key = new_key();
    const Result first = post("/api/v1/tokens", headers(key), "");
    EXPECT_EQ(first->status, 201);
    const auto secret = json::parse(first->body)["secret"].get<std::string>();
    const Result replay = post("/api/v1/tokens", headers(key), "");
    expect_problem(replay, 409, "conflict");
    EXPECT_TRUE(is_replay(replay));
    EXPECT_EQ(json::parse(replay->body)["reason"], "one_time_secret");
    EXPECT_EQ(replay->body.find(secret), std::string::npos);
}
