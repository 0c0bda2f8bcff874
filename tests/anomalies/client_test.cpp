// A keyed write over the stage while the N-th allocation, call of libpq or use of the socket fails, for N from 1 until nothing fails.
// Run by tests/anomalies/run. What fails and how is in client_faults.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "client_faults.hpp"
#include "idempotency/stage.hpp"
#include "session.hpp"
#include "test_database.hpp"

namespace {

using idempotency::Context;
using idempotency::http::Request;
using idempotency::http::Response;

/// What the stage is asked to do.
struct Form {
    std::string name;
    int status = 201;
    bool keyed = true;
    bool deferred = false;
    bool in_one_flush = false;
    bool done_before = false;  ///< the key has its answer
    bool prepared_statements = true;
};

const Form forms[] = {{.name = "in_sequence"},
                      {.name = "in_sequence_unprepared", .prepared_statements = false},
                      {.name = "deferred", .deferred = true},
                      {.name = "in_one_flush", .deferred = true, .in_one_flush = true},
                      {.name = "replay", .done_before = true},
                      {.name = "replay_deferred", .deferred = true, .done_before = true},
                      {.name = "final_error", .status = 404},
                      {.name = "without_key", .keyed = false}};

std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.name; }

class ClientTest : public ::testing::TestWithParam<Form> {
protected:
    ClientTest() {
        observer.run("CREATE TABLE effects (note text)");
        actor.principal_id = idempotency::Uuid::parse(database.new_principal());
    }

    /// A stage on a pool of one connection: one that is lost, or not given back, is missed.
    struct Server {
        explicit Server(const std::string& conninfo, bool prepared_statements)
            : pool(conninfo, 1), stage(pool, options(prepared_statements)) {}

        static idempotency::StageOptions options(bool prepared_statements) {
            idempotency::StageOptions options;
            options.unit_of_work.prepared_statements = prepared_statements;
            return options;
        }

        idempotency::Pool pool;
        idempotency::Stage stage;
    };

    [[nodiscard]] std::unique_ptr<Server> new_server() const {
        return std::make_unique<Server>(database.conninfo(), form.prepared_statements);
    }

    [[nodiscard]] Response send(const Server& server, const std::string& key) const {
        Request request{"POST", "/orders", {}, R"({"sku":"A-1","quantity":2})"};
        if (form.keyed) {
            request.headers.add("Idempotency-Key", key);
        }
        return server.stage.handle(operation, actor, request, [&](const Request&, Context& context) {
            const std::string insert = "INSERT INTO effects VALUES ($1) RETURNING ";
            if (form.in_one_flush) {
                return context
                    .finish_with(insert + "201, jsonb_build_object('id', gen_random_uuid()), NULL::uuid", {key})
                    .value();
            }
            const auto row = context.transaction().execute(insert + "gen_random_uuid()", {key});
            const std::string id(row.get(0, 0).value());
            return form.status == 201
                       ? Response::json(201, R"({"id": ")" + id + R"("})")
                       : idempotency::Problem{form.status, "test", "Test", id, {}, {}}.to_response("none");
        });
    }

    /// @return nothing when it threw std::bad_alloc, which is for the HTTP server to answer
    [[nodiscard]] std::optional<Response> send_while_failing(const Server& server, const std::string& key,
                                                             faults::Kind kind, int n) {
        std::optional<Response> response;
        faults::arm(kind, n);
        try {
            response = send(server, key);
        } catch (const std::bad_alloc&) {}
        failed = faults::disarm();
        return response;
    }

    [[nodiscard]] std::string value(const std::string& sql) const { return observer.run(sql).value; }
    [[nodiscard]] int effects_of(const std::string& key) const {
        return std::stoi(value("SELECT count(*) FROM effects WHERE note = '" + key + "'"));
    }
    [[nodiscard]] std::string stored_of(const std::string& key) const {
        return value("SELECT state, response_body FROM idempotency_keys WHERE key = '" + key + "'");
    }

    /// A session that has lost its client may still be at work.
    void wait_until_nobody_works() const {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (
            value("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_type"
                  " = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle')") != "t") {
            ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "a session is still at work";
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    /// An answer of success or final error is right and stored; 500 says that nothing was changed; 503 says nothing.
    void expect_true(const Response& response, const std::string& key) const {
        if (response.status == form.status && form.status == 404) {
            EXPECT_EQ(effects_of(key), 0);
        } else if (response.status == form.status) {
            EXPECT_EQ(effects_of(key), 1);
            EXPECT_TRUE(!form.keyed || stored_of(key) == "completed|" + response.body) << stored_of(key) << '\n'
                                                                                       << response.body;
        } else if (response.status == 500) {
            EXPECT_EQ(effects_of(key), form.done_before ? 1 : 0);
            EXPECT_EQ(stored_of(key) != "", form.done_before);
        } else {
            EXPECT_EQ(response.status, 503) << response.body;
            EXPECT_TRUE(response.headers.get("Retry-After").has_value());
        }
    }

    /// The repeat gets what the first one was told, or runs.
    void expect_repeat(const Server& server, const std::optional<Response>& first, const std::string& key) const {
        const Response repeat = send(server, key);
        EXPECT_EQ(repeat.status, form.status) << repeat.body;
        expect_true(repeat, key);
        if (first && first->status == 201) {
            EXPECT_TRUE(repeat.headers.get("Idempotent-Replay").has_value());
            EXPECT_EQ(repeat.body, first->body);
        }
        EXPECT_EQ(stored_of(key).substr(0, 9), "completed");
    }

    /// @return whether there was an N-th call
    bool fails_at(int n, const faults::Name& kind, const Server& server) {
        SCOPED_TRACE(std::string(kind.text) + " " + std::to_string(n));
        const std::string key = new_key();
        if (form.done_before) {
            EXPECT_EQ(send(server_of_first, key).status, form.status);
        }
        const std::optional<Response> response = send_while_failing(server, key, kind.kind, n);
        wait_until_nobody_works();
        EXPECT_TRUE(failed || response->status == form.status) << response->body;
        if (response) {
            expect_true(*response, key);
        }
        if (form.keyed) {
            expect_repeat(server, response, key);
        } else {
            EXPECT_EQ(send(server, new_key()).status, form.status);
        }
        return failed;
    }

    const Form& form = GetParam();
    const TestDatabase database;
    const Session observer{database.conninfo()};
    const Server server_of_first{database.conninfo(), true};
    idempotency::Operation operation{.action = "orders.create", .keyed = true, .deferred = form.deferred};
    idempotency::Actor actor;
    bool failed = false;
};

TEST_P(ClientTest, HasOneEffectAndTellsTheTruth) {
    for (const faults::Name& kind : faults::names) {
        int while_connecting = 0;  // connecting included
        while (!HasFailure() && fails_at(while_connecting + 1, kind, *new_server())) {
            ++while_connecting;
        }
        const std::unique_ptr<Server> server = new_server();
        EXPECT_EQ(send(*server, new_key()).status, form.status);
        const int objects = faults::living_objects();
        const int results = faults::living_results();
        int while_connected = 0;
        while (!HasFailure() && fails_at(while_connected + 1, kind, *server)) {
            ++while_connected;
        }
        EXPECT_EQ(faults::living_results(), results) << kind.text;
        EXPECT_LE(faults::living_objects(), objects + 8) << kind.text;
        RecordProperty(std::string(kind.text),
                       std::to_string(while_connecting) + "+" + std::to_string(while_connected));
    }
}

INSTANTIATE_TEST_SUITE_P(Client, ClientTest, ::testing::ValuesIn(forms),
                         [](const auto& parameter) { return parameter.param.name; });

}  // namespace
