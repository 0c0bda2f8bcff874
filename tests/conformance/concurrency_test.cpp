// Conformance: requests with one key at the same time.
// Run by tests/conformance/run; needs a server that speaks the orders contract.
#include <future>

#include "conformance_test.hpp"

using Concurrency = ConformanceTest;

TEST_F(Concurrency, FiftyAtOnceHaveOneEffectAndOneAnswer) {
    const std::string key = new_key();
    std::vector<std::future<Result>> answers;
    for (int i = 0; i < 50; ++i) {
        answers.push_back(std::async(std::launch::async, [&] { return create(key); }));
    }
    int first_answers = 0;
    std::string body;
    for (auto& answer : answers) {
        const Result result = answer.get();
        ASSERT_TRUE(result) << httplib::to_string(result.error());
        if (result->status == 201) {
            first_answers += is_replay(result) ? 0 : 1;
            EXPECT_TRUE(body.empty() || body == result->body);
            body = result->body;
        } else {
            expect_problem(result, 409, "request_in_progress");
        }
    }
    EXPECT_EQ(first_answers, 1);
    EXPECT_EQ(effects(), 1);
}

TEST_F(Concurrency, RepeatOfASlowRequestWaitsOrIsToldThatItRuns) {
    const std::string key = new_key();
    const auto slow = [&] { return create(key, "sleep=1000"); };
    auto one = std::async(std::launch::async, slow);
    auto two = std::async(std::launch::async, slow);
    for (const Result& result : {one.get(), two.get()}) {
        ASSERT_TRUE(result);
        if (result->status != 201) {
            expect_problem(result, 409, "request_in_progress");
            EXPECT_NE(result->get_header_value("Retry-After"), "");
            EXPECT_FALSE(is_replay(result));
        }
    }
    const Result later = create(key);
    EXPECT_EQ(later->status, 201);
    EXPECT_TRUE(is_replay(later));
    EXPECT_EQ(effects(), 1);
}

TEST_F(Concurrency, AnotherPrincipalWithTheSameKeyIsNotHeldUp) {
    const std::string key = new_key();
    auto first = std::async(std::launch::async, [&, with = headers(key, {{"Demo-Behaviour", "sleep=1000"}})] {
        return post("/api/v1/orders", with, order());
    });
    std::swap(principal, other_principal);
    const Result theirs = create(key);
    EXPECT_EQ(theirs->status, 201);
    EXPECT_FALSE(is_replay(theirs));
    EXPECT_EQ(first.get()->status, 201);
}
