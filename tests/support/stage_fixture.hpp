// A stage on a database of its own, with a table of effects that handlers write to.
// Used by the stage's integration tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "idempotency/stage.hpp"
#include "test_database.hpp"

/// Remembers every event as one word with its details.
class RecordingObserver final : public idempotency::Observer {
public:
    void started(std::string_view) noexcept override { note("started"); }
    void replayed(std::string_view, int status) noexcept override { note("replayed " + std::to_string(status)); }
    void reused(std::string_view) noexcept override { note("reused"); }
    void in_progress(std::string_view) noexcept override { note("in_progress"); }
    void expired(std::string_view) noexcept override { note("expired"); }
    void stored(std::string_view, int status) noexcept override { note("stored " + std::to_string(status)); }
    void not_stored(std::string_view, int status) noexcept override { note("not_stored " + std::to_string(status)); }
    void retried(std::string_view, std::string_view sqlstate) noexcept override {
        note("retried " + std::string(sqlstate));
    }
    void in_doubt(std::string_view, bool committed) noexcept override {
        note(committed ? "in_doubt committed" : "in_doubt not committed");
    }
    void waited(std::string_view, std::chrono::nanoseconds duration) noexcept override {
        const std::scoped_lock lock(mutex_);
        waits_.push_back(duration);
    }
    void unstorable(std::string_view, std::string_view reason) noexcept override {
        note("unstorable " + std::string(reason));
    }
    void failed(std::string_view, std::string_view reason) noexcept override { note("failed " + std::string(reason)); }

    [[nodiscard]] std::vector<std::string> events() const {
        const std::scoped_lock lock(mutex_);
        return events_;
    }

    /// How long each begin took.
    [[nodiscard]] std::vector<std::chrono::nanoseconds> waits() const {
        const std::scoped_lock lock(mutex_);
        return waits_;
    }

private:
    void note(std::string event) {
        const std::scoped_lock lock(mutex_);
        events_.push_back(std::move(event));
    }

    mutable std::mutex mutex_;
    std::vector<std::string> events_;
    std::vector<std::chrono::nanoseconds> waits_;
};

class StageTest : public ::testing::Test {
protected:
    using Context = idempotency::Context;
    using Handler = idempotency::Handler;
    using Operation = idempotency::Operation;
    using Request = idempotency::http::Request;
    using Response = idempotency::http::Response;
    using json = nlohmann::json;

    StageTest() : StageTest(std::chrono::milliseconds(5000)) {}
    explicit StageTest(std::chrono::milliseconds lock_timeout)
        : pool(database.application_conninfo(), 64), stage(pool, options(lock_timeout)) {
        database.value("CREATE TABLE effects (note text)");
        actor.principal_id = idempotency::Uuid::parse(database.new_principal());
    }

    [[nodiscard]] idempotency::StageOptions options(std::chrono::milliseconds lock_timeout) {
        idempotency::StageOptions stage_options;
        stage_options.unit_of_work.lock_timeout = lock_timeout;
        stage_options.observer = &observer;
        stage_options.unit_of_work.prepared_statements = !through_pooler();
        return stage_options;
    }

    /// A request with a key; `key` empty: without the header.
    [[nodiscard]] static Request request(const std::string& key, std::string body = R"({"sku":"A-1"})",
                                         std::string target = "/api/v1/orders", std::string method = "POST") {
        Request made{std::move(method), std::move(target), {}, std::move(body)};
        if (!key.empty()) {
            made.headers.add("Idempotency-Key", key);
        }
        return made;
    }

    Response send(const Request& made, const Handler& handler) { return stage.handle(operation, actor, made, handler); }

    /// A handler that writes an effect and answers 201; each run makes another resource.
    [[nodiscard]] Handler creating() {
        return [this](const Request&, Context& context) {
            ++runs;
            const auto row =
                context.transaction().execute("INSERT INTO effects VALUES ('created') RETURNING gen_random_uuid()");
            return Response::json(
                201, R"({"id":")" + std::string(row.get(0, 0).value()) + R"(","version":1,"zeta":[1.0, 2]})");
        };
    }

    /// A handler that writes an effect and answers `status` with a problem.
    [[nodiscard]] Handler answering(int status) {
        return [this, status](const Request&, Context& context) {
            ++runs;
            context.transaction().execute("INSERT INTO effects VALUES ('wrong')");
            return idempotency::Problem{status, "test_code", "Test", "A test.", {}, {}}.to_response(
                context.correlation_id());
        };
    }

    [[nodiscard]] int effects() const { return std::stoi(database.value("SELECT count(*) FROM effects")); }
    [[nodiscard]] int keys() const { return std::stoi(database.value("SELECT count(*) FROM idempotency_keys")); }

    [[nodiscard]] static std::string code(const Response& response) {
        const json document = json::parse(response.body, nullptr, false);
        return document.is_object() ? document.value("code", "") : "";
    }
    [[nodiscard]] static std::string header(const Response& response, std::string_view name) {
        return std::string(response.headers.get(name).value_or(""));
    }
    [[nodiscard]] static bool is_replay(const Response& response) {
        return header(response, "Idempotent-Replay") == "true";
    }

    /// What a client compares of two answers: everything but the headers that belong to one request.
    static void expect_same_answer(const Response& first, const Response& replay) {
        EXPECT_EQ(replay.status, first.status);
        EXPECT_EQ(replay.body, first.body);
        EXPECT_EQ(header(replay, "Content-Type"), header(first, "Content-Type"));
        EXPECT_EQ(header(replay, "ETag"), header(first, "ETag"));
        EXPECT_FALSE(is_replay(first));
        EXPECT_TRUE(is_replay(replay));
    }

    TestDatabase database;
    RecordingObserver observer;
    idempotency::Pool pool;
    idempotency::Stage stage;
    idempotency::Actor actor;
    Operation operation{"orders.create", true, {200, 201}, 1024 * 1024};
    std::atomic<int> runs{0};
};

/// A stage whose repeats wait a tenth of a second.
class ImpatientStageTest : public StageTest {
protected:
    ImpatientStageTest() : StageTest(std::chrono::milliseconds(100)) {}
};
