// Measures what the stage adds to a write: plain transactions, keyed ones and replays by turns, with and without network delay.
// Called by tests/bench/run with IDEMPOTENCY_TEST_CONNINFO.
#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "idempotency/stage.hpp"
#include "proxy.hpp"
#include "test_database.hpp"

namespace {

using idempotency::Context;
using idempotency::Operation;
using idempotency::http::Request;
using idempotency::http::Response;

constexpr const char* insert_sql = "INSERT INTO effects (note) VALUES ('bench') RETURNING id";
constexpr const char* begin_sql =
    "SELECT outcome FROM idempotency_begin($1::uuid, $2::uuid, 'orders.create', sha256('x'))";
constexpr const char* complete_sql = "SELECT idempotency_complete($1::uuid, $2::uuid, 201, '{\"version\": 1}')";

/// The same work by hand on libpq: with prepared statements, and no more than there must be.
class ByHand {
public:
    ByHand(const std::string& conninfo, std::string principal)
        : connection_(PQconnectdb(conninfo.c_str()), PQfinish), principal_(std::move(principal)) {
        prepare("insert", insert_sql);
        prepare("begin", begin_sql);
        prepare("complete", complete_sql);
    }

    void plain() {
        simple("BEGIN");
        prepared("insert", {});
        simple("COMMIT");
    }

    /// One round trip a statement.
    void keyed_statement_by_statement() {
        const std::string key = new_key();
        simple("BEGIN");
        simple("SET LOCAL lock_timeout = '5s'");
        prepared("begin", {principal_.c_str(), key.c_str()});
        prepared("insert", {});
        prepared("complete", {principal_.c_str(), key.c_str()});
        simple("COMMIT");
    }

    /// The round trips of the stage.
    void keyed_pipelined() {
        const std::string key = new_key();
        const std::vector<const char*> parameters{principal_.c_str(), key.c_str()};
        PQenterPipelineMode(connection_.get());
        send("BEGIN");
        send("SET LOCAL lock_timeout = '5s'");
        send_prepared("begin", parameters);
        flush();
        send_prepared("insert", {});
        flush();
        send_prepared("complete", parameters);
        send("COMMIT");
        flush();
        PQexitPipelineMode(connection_.get());
    }

private:
    using Answer = std::unique_ptr<PGresult, decltype(&PQclear)>;

    void check(PGresult* owned) {
        const Answer answer(owned, PQclear);
        const ExecStatusType status = PQresultStatus(answer.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_PIPELINE_SYNC) {
            throw std::runtime_error(PQerrorMessage(connection_.get()));
        }
    }
    void prepare(const char* name, const char* sql) { check(PQprepare(connection_.get(), name, sql, 0, nullptr)); }
    void simple(const char* sql) { check(PQexec(connection_.get(), sql)); }
    void prepared(const char* name, const std::vector<const char*>& values) {
        check(PQexecPrepared(connection_.get(), name, static_cast<int>(values.size()), values.data(), nullptr, nullptr,
                             0));
    }
    void send(const char* sql) { PQsendQueryParams(connection_.get(), sql, 0, nullptr, nullptr, nullptr, nullptr, 0); }
    void send_prepared(const char* name, const std::vector<const char*>& values) {
        PQsendQueryPrepared(connection_.get(), name, static_cast<int>(values.size()), values.data(), nullptr, nullptr,
                            0);
    }
    void flush() {
        PQpipelineSync(connection_.get());
        for (bool synchronised = false; !synchronised;) {
            PGresult* const answer = PQgetResult(connection_.get());
            synchronised = answer != nullptr && PQresultStatus(answer) == PGRES_PIPELINE_SYNC;
            if (answer != nullptr) {
                check(answer);
            }
        }
    }

    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
    std::string principal_;
};

struct Series {
    const char* name;
    std::function<void()> work;
    std::vector<double> microseconds = {};

    [[nodiscard]] double median() {
        std::ranges::nth_element(microseconds, microseconds.begin() + static_cast<long>(microseconds.size() / 2));
        return microseconds[microseconds.size() / 2];
    }
};

/// By turns, one call each, so that all meet the same noise.
void measure(const char* title, std::vector<Series> series, int calls) {
    for (int i = -calls / 10; i < calls; ++i) {  // the first tenth warms up
        for (Series& one : series) {
            const auto begin = std::chrono::steady_clock::now();
            one.work();
            const std::chrono::duration<double, std::micro> duration = std::chrono::steady_clock::now() - begin;
            if (i >= 0) {
                one.microseconds.push_back(duration.count());
            }
        }
    }
    const double base = series.front().median();
    std::printf("\n%s (median of %d calls, as a ratio to the first line)\n", title, calls);
    for (Series& one : series) {
        std::printf("  %-52s %6.2f %10.0f microseconds\n", one.name, one.median() / base, one.median());
    }
}

/// The stage with a handler that inserts one row.
class Keyed {
public:
    Keyed(const std::string& conninfo, const std::string& principal) : pool_(conninfo, 1), stage_(pool_, {}) {
        actor_.principal_id = idempotency::Uuid::parse(principal);
        replayed_.headers.add("Idempotency-Key", new_key());
        expect(stage_.handle(operation_, actor_, replayed_, inserting), false);
    }

    void first(bool deferred) {
        Operation operation = operation_;
        operation.deferred = deferred;
        expect(stage_.handle(operation, actor_, request(), inserting), false);
    }
    void one_flush() {
        Operation operation = operation_;
        operation.deferred = true;
        expect(stage_.handle(operation, actor_, request(), finishing), false);
    }
    void replay() { expect(stage_.handle(operation_, actor_, replayed_, inserting), true); }

private:
    static Response inserting(const Request&, Context& context) {
        context.transaction().execute(insert_sql);
        return Response::json(201, R"({"version": 1})");
    }
    static Response finishing(const Request&, Context& context) {
        return context
            .finish_with(
                "INSERT INTO effects (note) VALUES ('bench') RETURNING 201, jsonb_build_object('version', 1), NULL::uuid")
            .value();
    }
    static Request request() {
        Request made{"POST", "/api/v1/orders", {}, R"({"sku":"A-1","quantity":2})"};
        made.headers.add("Idempotency-Key", new_key());
        return made;
    }
    static void expect(const Response& response, bool replay) {
        if (response.status != 201 || response.headers.get("Idempotent-Replay").has_value() != replay) {
            throw std::runtime_error("unexpected answer: " + response.body);
        }
    }

    idempotency::Pool pool_;
    idempotency::Stage stage_;
    idempotency::Actor actor_;
    Operation operation_{"orders.create", true};
    Request replayed_{"POST", "/api/v1/orders", {}, R"({"sku":"A-1","quantity":2})"};
};

}  // namespace

int main() {
    const TestDatabase database;
    database.value("CREATE TABLE effects (id uuid DEFAULT gen_random_uuid(), note text)");
    const std::string principal = database.new_principal();
    {
        Proxy proxy(database.conninfo());
        proxy.delay_round_trips(std::chrono::microseconds(500));
        ByHand by_hand(proxy.conninfo(), principal);
        Keyed keyed(proxy.conninfo(), principal);
        measure("a round trip of 0.5 ms",
                {{"BEGIN, INSERT, COMMIT", [&] { by_hand.plain(); }},
                 {"keyed", [&] { keyed.first(false); }},
                 {"keyed, deferred", [&] { keyed.first(true); }},
                 {"keyed, one flush", [&] { keyed.one_flush(); }},
                 {"keyed by hand, one round trip a statement", [&] { by_hand.keyed_statement_by_statement(); }},
                 {"replay", [&] { keyed.replay(); }}},
                400);
    }
    ByHand by_hand(database.conninfo(), principal);
    Keyed keyed(database.conninfo(), principal);
    measure("no delay",
            {{"keyed by hand, pipelined", [&] { by_hand.keyed_pipelined(); }},
             {"keyed", [&] { keyed.first(false); }},
             {"keyed, one flush", [&] { keyed.one_flush(); }},
             {"BEGIN, INSERT, COMMIT", [&] { by_hand.plain(); }},
             {"replay", [&] { keyed.replay(); }}},
            2000);
}
