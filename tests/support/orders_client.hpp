// An HTTP client of the orders contract (client/examples/openapi.yaml), with what tests ask about its answers.
// Used by the conformance suite and by the tests that start the orders server themselves.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "test_keys.hpp"

class OrdersClient {
protected:
    using json = nlohmann::json;
    using Headers = httplib::Headers;
    using Result = httplib::Result;

    /// @param url    of the server, e.g. http://127.0.0.1:8080
    /// @param sender the principal that sends the requests
    OrdersClient(std::string url, std::string sender) : principal(std::move(sender)), url_(std::move(url)) {}

    /// host:port
    [[nodiscard]] std::string authority() const { return url_.substr(url_.find("//") + 2); }

    /// A client for one request: tests send from many threads.
    [[nodiscard]] httplib::Client client() const {
        httplib::Client made(url_);
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

    /// An order of this test's own article.
    [[nodiscard]] std::string order(int quantity = 2) const {
        return R"({"sku":")" + sku + R"(","quantity":)" + std::to_string(quantity) + "}";
    }

    Result post(const std::string& path, const Headers& with, const std::string& body,
                const std::string& type = "application/json") const {
        return client().Post(path.c_str(), with, body, type.c_str());
    }
    Result create(const std::string& key, const std::string& behaviour = "") const {
        return create(key, behaviour, order());
    }
    Result create(const std::string& key, const std::string& behaviour, const std::string& body) const {
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

    /// How many orders of this test's article there are: the effects.
    [[nodiscard]] long effects() const {
        const Result result = client().Get("/api/v1/orders", headers());
        const json list = json::parse(result->body);
        return std::ranges::count_if(list["orders"], [&](const json& one) { return one["sku"] == sku; });
    }

    [[nodiscard]] static std::string id_of(const Result& created) {
        return json::parse(created->body)["id"].get<std::string>();
    }
    [[nodiscard]] static std::string code(const Result& result) {
        const json document = json::parse(result->body, nullptr, false);
        return document.is_object() ? document.value("code", "") : "";
    }
    static void expect_problem(const Result& result, int status, const std::string& expected_code) {
        ASSERT_TRUE(result) << httplib::to_string(result.error());
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
        EXPECT_EQ(replay->get_header_value("Cache-Control"), "no-store");
        EXPECT_FALSE(is_replay(first));
        EXPECT_TRUE(is_replay(replay));
    }

    std::string principal;
    std::string sku = "test-" + new_key();

private:
    std::string url_;
};
