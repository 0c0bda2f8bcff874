// The orders server as a process: killed processes, its life, and what it leaves in the database.
// Run by ctest against the real program and a real server.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "orders_fixture.hpp"

namespace {

class Impatient : public OrdersTest {
protected:
    Impatient() : OrdersTest({"--demo", "--threads", "16", "--lock-timeout-ms", "100"}) {}
};

/// On each HTTP library.
class ServerLife : public OrdersTest, public ::testing::WithParamInterface<const char*> {
protected:
    ServerLife() : OrdersTest({"--demo", "--threads", "16", "--http", GetParam()}) {}
};

}  // namespace

using SlowRequest = Impatient;
using Tokens = OrdersTest;
using NotKept = OrdersTest;
using KilledProcess = OrdersTest;
using ServerUsage = OrdersTest;

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

/// The files below `folder` that hold `text`.
std::vector<std::string> files_with(const std::string& folder, const std::string& text) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.is_regular_file()) {
            std::ifstream file(entry.path(), std::ios::binary);
            const std::string content(std::istreambuf_iterator<char>(file), {});
            if (content.find(text) != std::string::npos) {
                found.push_back(entry.path());
            }
        }
    }
    return found;
}

TEST_F(Tokens, SecretIsInNoFileOfTheServer) {
    const json token = json::parse(post("/api/v1/tokens", headers(new_key()), "")->body);
    const auto id = token["id"].get<std::string>();
    EXPECT_EQ(database.value("SELECT resource_id FROM idempotency_keys"), id);
    EXPECT_EQ(database.value("SELECT count(*) FROM tokens WHERE id = '" + id + "'"), "1");
    const std::string kept = "kept-" + new_key();
    database.value("INSERT INTO notes (principal_id, text) SELECT '" + principal + "', '" + kept +
                   "' FROM generate_series(1, 20)");  // one alone may lie across two pages of the log
    database.value("CHECKPOINT");
    // Table files, write-ahead log and server log. What is stored is found there, so that the search is known to work.
    const std::string folder = database.value("SELECT current_setting('data_directory')");
    EXPECT_GE(files_with(folder, kept).size(), 2U);
    EXPECT_THAT(files_with(folder, token["secret"].get<std::string>()), ::testing::IsEmpty());
}

TEST_F(NotKept, LeavesNoRow) {
    for (const char* behaviour : {"status=500", "status=429", "error=40001"}) {
        create(new_key(), behaviour);
    }
    create("not a key");
    post("/api/v1/notes", headers(new_key()), R"({"text":"hello"})");
    EXPECT_EQ(keys(), 0);
    EXPECT_EQ(orders(), 0);
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
        httplib::Client to_dying(dying.url());
        to_dying.set_read_timeout(60, 0);
        return to_dying.Post("/api/v1/orders", headers(key, {{"Demo-Behaviour", "sleep=60000"}}), order(),
                             "application/json");
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

TEST_P(ServerLife, SigtermFinishesRequestsInFlight) {
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

TEST_P(ServerLife, SigtermRightAfterTheLineEndsIt) {
    for (int i = 0; i < 100; ++i) {
        OrdersServer brief(database.conninfo(), {"--http", GetParam()});
        brief.signal(SIGTERM);
        ASSERT_EQ(brief.wait(), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(On, ServerLife, ::testing::Values("httplib", "beast"),
                         [](const auto& library) { return std::string(library.param); });

TEST_F(ServerUsage, DemoBehaviourNeedsTheOption) {
    const OrdersServer plain(database.conninfo(), {});
    httplib::Client to_plain(plain.url());
    const Result result = to_plain.Post("/api/v1/orders", headers(new_key(), {{"Demo-Behaviour", "status=500"}}),
                                        order(), "application/json");
    EXPECT_EQ(result->status, 201);
}

TEST_F(ServerUsage, UsageErrorsExitWith2) {
    for (const char* arguments :
         {"", "--listen 127.0.0.1:0", "--conninfo '' --listen nowhere", "--conninfo '' --listen :1x",
          "--conninfo '' --listen 127.0.0.1:0 --threads 0", "--conninfo '' --listen 127.0.0.1:0 --no-such-option"}) {
        const int status = std::system((std::string(ORDERS_SERVER " ") + arguments + " >/dev/null 2>&1").c_str());
        EXPECT_EQ(WEXITSTATUS(status), 2) << arguments;
    }
    EXPECT_EQ(std::system(ORDERS_SERVER " --help >/dev/null"), 0);
}
