// The real orders server as a process, on a database of its own, and an HTTP client for it.
// Used by the HTTP tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/types.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test_database.hpp"

/// Started with --listen 127.0.0.1:0; killed at the end if it still runs.
class OrdersServer {
public:
    explicit OrdersServer(const std::string& conninfo,
                          std::vector<std::string> options = {"--demo", "--threads", "64"});
    ~OrdersServer();
    OrdersServer(const OrdersServer&) = delete;
    OrdersServer& operator=(const OrdersServer&) = delete;

    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

    /// Sends the signal. Does not wait.
    void signal(int number) const;
    /// Waits for the end.
    /// @return the exit status, or 128 plus the signal that ended it
    int wait();

private:
    pid_t pid_ = -1;
    int output_ = -1;
    int port_ = 0;
};

class OrdersTest : public ::testing::Test {
protected:
    using json = nlohmann::json;

    OrdersTest() : OrdersTest({"--demo", "--threads", "64", "--lock-timeout-ms", "5000"}) {}
    explicit OrdersTest(std::vector<std::string> options)
        : principal(database.new_principal()), server(database.conninfo(), std::move(options)) {}

    using Headers = httplib::Headers;
    using Result = httplib::Result;

    /// A client for one request: tests send from many threads.
    [[nodiscard]] httplib::Client client() const {
        httplib::Client made("127.0.0.1", server.port());
        made.set_read_timeout(60, 0);
        made.set_url_encode(false);
        return made;
    }

    [[nodiscard]] Headers headers(const std::string& key = "", Headers more = {}) const {
        more.emplace("Authorization", "Bearer " + principal);
        if (!key.empty()) {
            more.emplace("Idempotency-Key", key);
        }
        return more;
    }

    Result post(const std::string& path, const Headers& with, const std::string& body,
                const std::string& type = "application/json") const {
        return client().Post(path.c_str(), with, body, type.c_str());
    }
    Result create(const std::string& key, const std::string& behaviour = "",
                  const std::string& body = R"({"sku":"A-1","quantity":2})") const {
        Headers with = headers(key);
        if (!behaviour.empty()) {
            with.emplace("Demo-Behaviour", behaviour);
        }
        return post("/api/v1/orders", with, body);
    }
    Result put(const std::string& id, const std::string& key, const std::string& version,
               const std::string& body = R"({"sku":"B-2","quantity":5})") const {
        Headers with = headers(key);
        if (!version.empty()) {
            with.emplace("If-Match", version);
        }
        return client().Put(("/api/v1/orders/" + id).c_str(), with, body, "application/json");
    }
    Result remove(const std::string& id, const std::string& key) const {
        return client().Delete(("/api/v1/orders/" + id).c_str(), headers(key));
    }

    [[nodiscard]] int orders() const { return std::stoi(database.value("SELECT count(*) FROM orders")); }
    [[nodiscard]] int keys() const { return std::stoi(database.value("SELECT count(*) FROM idempotency_keys")); }

    [[nodiscard]] static std::string code(const Result& result) {
        const json document = json::parse(result->body, nullptr, false);
        return document.is_object() ? document.value("code", "") : "";
    }
    static void expect_problem(const Result& result, int status, const std::string& expected_code) {
        ASSERT_TRUE(result);
        EXPECT_EQ(result->status, status) << result->body;
        EXPECT_EQ(code(result), expected_code);
        EXPECT_EQ(result->get_header_value("Content-Type"), "application/problem+json");
        const json document = json::parse(result->body);
        EXPECT_EQ(document["status"], status);
        EXPECT_FALSE(document.value("correlation_id", "").empty());
        EXPECT_FALSE(result->get_header_value("Correlation-Id").empty());
    }
    [[nodiscard]] static bool is_replay(const Result& result) {
        return result->get_header_value("Idempotent-Replay") == "true";
    }
    static void expect_same_answer(const Result& first, const Result& replay) {
        ASSERT_TRUE(first);
        ASSERT_TRUE(replay);
        EXPECT_EQ(replay->status, first->status);
        EXPECT_EQ(replay->body, first->body);
        EXPECT_EQ(replay->get_header_value("Content-Type"), first->get_header_value("Content-Type"));
        EXPECT_EQ(replay->get_header_value("ETag"), first->get_header_value("ETag"));
        EXPECT_FALSE(is_replay(first));
        EXPECT_TRUE(is_replay(replay));
    }

    /// Waits until a request of the server sleeps in the database.
    void wait_until_asleep() const {
        database.wait_until(
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'");
    }

    TestDatabase database;
    std::string principal;
    OrdersServer server;
};
