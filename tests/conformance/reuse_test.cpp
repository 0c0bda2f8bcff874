// Conformance: a key belongs to one request.
// Run by tests/conformance/run; needs a server that speaks the orders contract.
#include "conformance_test.hpp"

using Reuse = ConformanceTest;

TEST_F(Reuse, AnotherBodyIs422) {
    const std::string key = new_key();
    create(key);
    expect_problem(create(key, "", order(3)), 422, "idempotency_key_reuse");
    EXPECT_EQ(effects(), 1);
}

TEST_F(Reuse, AnotherPathOrMethodIs422) {
    const std::string key = new_key();
    create(key);
    expect_problem(post("/api/v1/tokens", headers(key), ""), 422, "idempotency_key_reuse");
    expect_problem(put(new_key(), key, "\"1\"", order()), 422, "idempotency_key_reuse");
    expect_problem(remove(new_key(), key), 422, "idempotency_key_reuse");
}

TEST_F(Reuse, ThePathIsComparedAsItWasSent) {
    const std::string key = new_key();
    remove("%6Eo-uuid", key);
    expect_problem(remove("no-uuid", key), 422, "idempotency_key_reuse");
}

TEST_F(Reuse, TheAnswerIsNotStoredInTheKeysPlace) {
    const std::string key = new_key();
    const Result first = create(key);
    create(key, "", order(3));
    expect_same_answer(first, create(key));
}
