// The orders server over HTTP: slow and failing first requests, many at once, and killed processes.
// Run by ctest against the real program and a real server.
#include <signal.h>

#include <future>

#include "orders_fixture.hpp"

namespace {

class Impatient : public OrdersTest {
protected:
    Impatient() : OrdersTest({"--demo", "--threads", "16", "--lock-timeout-ms", "100"}) {}
};

}  // namespace

using SlowRequest = Impatient;
using FailingRequest = OrdersTest;
using ManyRequests = OrdersTest;
using KilledProcess = OrdersTest;
using ServerLife = OrdersTest;

TEST_F(SlowRequest, ARepeatIsToldThatItRunsAndReplaysLater) {
    const std::string key = new_key();
    auto first = std::async(std::launch::async, [&] { return create(key, "sleep=700"); });
    wait_until_asleep();
    const Result repeat = create(key, "sleep=700");
    expect_problem(repeat, 409, "request_in_progress");
    EXPECT_NE(repeat->get_header_value("Retry-After"), "");
    const Result answered = first.get();
    EXPECT_EQ(answered->status, 201);
    expect_same_answer(answered, create(key));
    EXPECT_EQ(orders(), 1);
}

TEST_F(SlowRequest, AnotherPrincipalIsNotHeldUp) {
    const std::string key = new_key();
    auto first = std::async(std::launch::async, [&, with = headers(key, {{"Demo-Behaviour", "sleep=700"}})] {
        return post("/api/v1/orders", with, R"({"sku":"A-1","quantity":2})");
    });
    wait_until_asleep();
    const std::string other = database.new_principal();
    const Result result = post("/api/v1/orders", {{"Authorization", "Bearer " + other}, {"Idempotency-Key", key}},
                               R"({"sku":"other","quantity":1})");
    EXPECT_EQ(result->status, 201);
    EXPECT_EQ(first.get()->status, 201);
}

TEST_F(FailingRequest, StatusesThatAreNotFinalLeaveNoRow) {
    for (const int status : {500, 503, 429, 401, 428, 301}) {
        const std::string key = new_key();
        EXPECT_EQ(create(key, "status=" + std::to_string(status))->status, status);
        EXPECT_EQ(keys(), 0);
        EXPECT_EQ(orders(), 0);
        EXPECT_EQ(create(key)->status, 201);
        database.value("DELETE FROM orders; DELETE FROM idempotency_keys");
    }
}

TEST_F(FailingRequest, AFinalErrorAfterTheEffectRollsItBackAndIsReplayed) {
    for (const int status : {400, 403, 404, 409, 410, 412, 413, 415, 422}) {
        const std::string key = new_key();
        const Result first = create(key, "status=" + std::to_string(status));
        expect_problem(first, status, "demo_status");
        expect_same_answer(first, create(key));
    }
    EXPECT_EQ(orders(), 0);
}

TEST_F(FailingRequest, ADatabaseConflictIsRetriedOnceAndSucceeds) {
    const std::string key = new_key();
    const Result first = create(key, "error=once");
    EXPECT_EQ(first->status, 201);
    EXPECT_EQ(orders(), 1);
    expect_same_answer(first, create(key));
}

TEST_F(FailingRequest, ALastingConflictIs503AndNotStored) {
    for (const char* sqlstate : {"40001", "40P01", "55P03"}) {
        const std::string key = new_key();
        const Result result = create(key, "error=" + std::string(sqlstate));
        expect_problem(result, 503, "service_unavailable");
        EXPECT_NE(result->get_header_value("Retry-After"), "");
        EXPECT_EQ(keys(), 0);
    }
    EXPECT_EQ(orders(), 0);
}

TEST_F(FailingRequest, UnknownBehaviourIs400) {
    expect_problem(create(new_key(), "explode"), 400, "validation_failed");
    EXPECT_EQ(orders(), 0);
}

TEST_F(ManyRequests, FiftyIdenticalOnesHaveOneEffect) {
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
        EXPECT_LT(result->status, 500) << result->body;
        if (result->status == 201) {
            first_answers += is_replay(result) ? 0 : 1;
            EXPECT_TRUE(body.empty() || body == result->body);
            body = result->body;
        } else {
            EXPECT_EQ(code(result), "request_in_progress");
        }
    }
    EXPECT_EQ(first_answers, 1);
    EXPECT_EQ(orders(), 1);
}

TEST_F(KilledProcess, BackendInTheMiddleOfTheHandlerStartsAtOnce) {
    const std::string key = new_key();
    auto first = std::async(std::launch::async, [&] { return create(key, "sleep=2000"); });
    wait_until_asleep();
    database.value(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'");
    EXPECT_EQ(create(key)->status, 201);  // the killed request's own new attempt may win; either way it is one order
    EXPECT_EQ(first.get()->status, 201);
    EXPECT_EQ(orders(), 1);
    EXPECT_EQ(database.value("SELECT count(*) FROM idempotency_keys WHERE state = 'in_progress'"), "0");
}

TEST_F(KilledProcess, ApplicationInTheMiddleOfTheHandlerStartsAtOnceOnANewOne) {
    const std::string key = new_key();
    // With this setting the database server notices a client that died while it waits.
    OrdersServer dying(database.conninfo() + " options='-c client_connection_check_interval=20'");
    auto first = std::async(std::launch::async, [&] {
        httplib::Client to_dying("127.0.0.1", dying.port());
        to_dying.set_read_timeout(60, 0);
        return to_dying.Post("/api/v1/orders", headers(key, {{"Demo-Behaviour", "sleep=60000"}}),
                             R"({"sku":"A-1","quantity":2})", "application/json");
    });
    wait_until_asleep();
    dying.signal(SIGKILL);
    EXPECT_EQ(dying.wait(), 128 + SIGKILL);
    EXPECT_FALSE(first.get());
    const Result retry = create(key);
    ASSERT_TRUE(retry);
    EXPECT_EQ(retry->status, 201);
    EXPECT_FALSE(is_replay(retry));
    EXPECT_EQ(orders(), 1);
}

TEST_F(KilledProcess, IdleConnectionsThatTheServerClosedAreReplaced) {
    EXPECT_EQ(create(new_key())->status, 201);
    database.value(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
    EXPECT_EQ(create(new_key())->status, 201);
}

TEST_F(ServerLife, SigtermFinishesRequestsInFlight) {
    const std::string key = new_key();
    auto first = std::async(std::launch::async, [&] { return create(key, "sleep=500"); });
    wait_until_asleep();
    server.signal(SIGTERM);
    const Result answered = first.get();
    ASSERT_TRUE(answered);
    EXPECT_EQ(answered->status, 201);
    EXPECT_EQ(server.wait(), 0);
    EXPECT_EQ(orders(), 1);
}

TEST_F(ServerLife, SigtermRightAfterTheLineEndsIt) {
    for (int i = 0; i < 100; ++i) {
        OrdersServer brief(database.conninfo(), {});
        brief.signal(SIGTERM);
        ASSERT_EQ(brief.wait(), 0);
    }
}

TEST_F(ServerLife, DemoBehaviourNeedsTheOption) {
    const OrdersServer plain(database.conninfo(), {});
    httplib::Client to_plain("127.0.0.1", plain.port());
    const Result result = to_plain.Post("/api/v1/orders", headers(new_key(), {{"Demo-Behaviour", "status=500"}}),
                                        R"({"sku":"A-1","quantity":2})", "application/json");
    EXPECT_EQ(result->status, 201);
}

TEST_F(ServerLife, UsageErrorsExitWith2) {
    for (const char* arguments :
         {"", "--listen 127.0.0.1:0", "--conninfo '' --listen nowhere", "--conninfo '' --listen :1x",
          "--conninfo '' --listen 127.0.0.1:0 --threads 0", "--conninfo '' --listen 127.0.0.1:0 --no-such-option"}) {
        const int status = std::system((std::string(ORDERS_SERVER " ") + arguments + " >/dev/null 2>&1").c_str());
        EXPECT_EQ(WEXITSTATUS(status), 2) << arguments;
    }
    EXPECT_EQ(std::system(ORDERS_SERVER " --help >/dev/null"), 0);
}
