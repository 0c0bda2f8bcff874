// Puts load on one server: keyed writes, replays or identical requests at once, each way of doing them by turns. Prints a JSON line a round.
// Called by tests/bench/run with IDEMPOTENCY_TEST_CONNINFO.
#include <libpq-fe.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "idempotency/stage.hpp"
#include "proxy.hpp"
#include "test_database.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* schema = R"(
CREATE EXTENSION pgstattuple;
CREATE TABLE effects (id uuid DEFAULT gen_random_uuid(), note text);
CREATE FUNCTION claim_in_exception_block(principal uuid, wanted uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  found text;
BEGIN
  DELETE FROM idempotency_keys WHERE principal_id = principal AND key = wanted AND expires_at <= now();
  INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)
  VALUES (principal, wanted, 'orders.create', sha256('x'), now() + interval '1 day');
  RETURN 'started';
EXCEPTION WHEN unique_violation THEN
  SELECT CASE WHEN request_sha256 <> sha256('x') THEN 'reuse' WHEN state = 'completed' THEN 'replay' ELSE 'in_progress' END INTO found
  FROM idempotency_keys WHERE principal_id = principal AND key = wanted;
  RETURN found;
END
$$)";

/// Statements that are prepared by name. What is not among them is sent as it is.
const std::map<std::string, std::string> statements{
    {"insert", "INSERT INTO effects (note) VALUES ('bench') RETURNING id"},
    {"expire", "DELETE FROM idempotency_keys WHERE principal_id = $1::uuid AND key = $2::uuid AND expires_at <= now()"},
    {"claim by SQL",
     "INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at) VALUES ($1::uuid, $2::uuid, "
     "'orders.create', sha256('x'), now() + interval '1 day') ON CONFLICT (principal_id, key) DO NOTHING "
     "RETURNING 'started'"},
    {"claim by PL/pgSQL", "SELECT claim_in_exception_block($1::uuid, $2::uuid)"},
    {"claim by function",
     "SELECT outcome, response_status, response_body FROM idempotency_begin($1::uuid, $2::uuid, 'orders.create', "
     "sha256('x'))"},
    {"read",
     "SELECT response_status, response_body FROM idempotency_keys WHERE principal_id = $1::uuid AND key = $2::uuid AND "
     "state = 'completed' AND request_sha256 = sha256('x')"},
    {"complete by SQL",
     "UPDATE idempotency_keys SET state = 'completed', response_status = 201, response_body = '{\"version\": 1}' WHERE "
     "principal_id = $1::uuid AND key = $2::uuid"},
    {"complete by function", "SELECT idempotency_complete($1::uuid, $2::uuid, 201, '{\"version\": 1}')"}};

/// One client with a connection of its own.
class Client {
public:
    virtual ~Client() = default;
    /// Sends a request and checks its answer.
    /// @return whether the answer was a replay
    virtual bool request(const std::string& key) = 0;
};

/// Statements by hand on libpq. Those of one flush share a round trip; a claim that does not answer "started" makes it a replay.
class ByHand final : public Client {
public:
    using Flushes = std::vector<std::vector<std::string>>;

    ByHand(const std::string& conninfo, std::string principal, Flushes flushes, std::string read)
        : connection_(PQconnectdb(conninfo.c_str()), PQfinish),
          principal_(std::move(principal)),
          flushes_(std::move(flushes)),
          read_(std::move(read)) {
        PQenterPipelineMode(connection_.get());
        for (const auto& [name, sql] : statements) {
            PQsendPrepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr);
        }
        flush();
    }

    bool request(const std::string& key) override {
        for (const auto& flush_of : flushes_) {
            for (const std::string& statement : flush_of) {
                send(statement, key);
            }
            flush();
            if (flush_of.back().starts_with("claim") && answer_ != "started") {
                if (!read_.empty()) {
                    send(read_, key);
                    flush();
                }
                if (answer_ != (read_.empty() ? "replay" : "201")) {
                    throw std::runtime_error("unexpected answer: " + answer_);
                }
                send("ROLLBACK", key);
                flush();
                return true;
            }
        }
        return false;
    }

private:
    void send(const std::string& statement, const std::string& key) {
        const bool prepared = statements.contains(statement);
        const char* const parameters[] = {principal_.c_str(), key.c_str()};
        const int count = prepared && statements.at(statement).find("$2") != std::string::npos ? 2 : 0;
        if (prepared) {
            PQsendQueryPrepared(connection_.get(), statement.c_str(), count, parameters, nullptr, nullptr, 0);
        } else {
            PQsendQueryParams(connection_.get(), statement.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0);
        }
    }
    /// Keeps the first column of the last statement's row.
    void flush() {
        PQpipelineSync(connection_.get());
        for (bool synchronised = false; !synchronised;) {
            const std::unique_ptr<PGresult, decltype(&PQclear)> answer(PQgetResult(connection_.get()), PQclear);
            const ExecStatusType status = PQresultStatus(answer.get());
            synchronised = status == PGRES_PIPELINE_SYNC;
            if (answer == nullptr) {
                if (PQstatus(connection_.get()) != CONNECTION_OK) {
                    throw std::runtime_error(PQerrorMessage(connection_.get()));
                }
            } else if (status == PGRES_TUPLES_OK) {
                answer_ = PQntuples(answer.get()) > 0 ? PQgetvalue(answer.get(), 0, 0) : "";
            } else if (status != PGRES_COMMAND_OK && !synchronised) {
                throw std::runtime_error(PQresultErrorMessage(answer.get()));
            }
        }
    }

    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
    std::string principal_;
    Flushes flushes_;
    std::string read_;
    std::string answer_;
};

/// The HTTP stage, without a socket in front of it, and a handler that inserts one row.
class ByStage final : public Client {
public:
    ByStage(const std::string& conninfo, const std::string& principal, bool deferred, bool one_flush)
        : pool_(conninfo, 1), stage_(pool_, {}), one_flush_(one_flush) {
        actor_.principal_id = idempotency::Uuid::parse(principal);
        operation_.deferred = deferred;
    }

    bool request(const std::string& key) override {
        idempotency::http::Request request{"POST", "/api/v1/orders", {}, R"({"sku":"A-1","quantity":2})"};
        request.headers.add("Idempotency-Key", key);
        const auto response = stage_.handle(operation_, actor_, request, [this](const auto&, auto& context) {
            if (one_flush_) {
                return context
                    .finish_with(
                        "INSERT INTO effects (note) VALUES ('bench') RETURNING 201, jsonb_build_object('version', 1), NULL::uuid")
                    .value();
            }
            context.transaction().execute(statements.at("insert"));
            return idempotency::http::Response::json(201, R"({"version": 1})");
        });
        if (response.status != 201) {
            throw std::runtime_error("unexpected answer: " + response.body);
        }
        return response.headers.get("Idempotent-Replay").has_value();
    }

private:
    idempotency::Pool pool_;
    idempotency::Stage stage_;
    bool one_flush_;
    idempotency::Actor actor_;
    idempotency::Operation operation_{"orders.create", true};
};

struct Settings {
    std::string benchmark;
    int connections;
    std::string commit;
    double delay_ms;
    int rounds;
    double seconds;
};

struct Variant {
    std::string name;
    std::function<std::unique_ptr<Client>(const std::string& conninfo, const std::string& principal)> connect;
    bool keyed = true;
    bool claims_by_lock = false;
};

std::vector<Variant> variants_of(const std::string& benchmark) {
    const auto by_hand = [](ByHand::Flushes flushes, std::string read = {}) {
        return [=](const auto& conninfo, const auto& principal) {
            return std::make_unique<ByHand>(conninfo, principal, flushes, read);
        };
    };
    const auto by_stage = [](bool deferred, bool one_flush) {
        return [=](const auto& conninfo, const auto& principal) {
            return std::make_unique<ByStage>(conninfo, principal, deferred, one_flush);
        };
    };
    const std::string timeout = "SET LOCAL lock_timeout = '5s'";
    const auto in_three = [&](std::vector<std::string> claim, const std::string& complete) {
        claim.insert(claim.begin(), {"BEGIN", timeout});
        return ByHand::Flushes{std::move(claim), {"insert"}, {complete, "COMMIT"}};
    };
    const auto functions = by_hand(in_three({"claim by function"}, "complete by function"));
    std::vector<Variant> variants{
        {"plain", by_hand({{"BEGIN"}, {"insert"}, {"COMMIT"}}), false},
        {"a round trip a statement",
         by_hand({{"BEGIN"}, {timeout}, {"expire"}, {"claim by SQL"}, {"insert"}, {"complete by SQL"}, {"COMMIT"}},
                 "read")},
        {"PL/pgSQL, pipelined", by_hand(in_three({"claim by PL/pgSQL"}, "complete by SQL"), "read")},
        {"SQL, pipelined", by_hand(in_three({"expire", "claim by SQL"}, "complete by SQL"), "read")},
        {"functions, pipelined", functions},
        {"functions, claim by lock", functions, true, true},
        {"stage", by_stage(false, false)}};
    if (benchmark == "keyed_write") {
        variants.push_back({"stage, deferred", by_stage(true, false)});
        variants.push_back({"stage, one flush", by_stage(true, true)});
    }
    return variants;
}

/// What the server counts, read at two moments.
struct Counters {
    double wal_bytes, transaction_ids, effects, keys, cpu_nanoseconds;

    /// The time on a CPU is that of the backends that the load is connected to, as the kernel counts it.
    explicit Counters(const Database& database)
        : wal_bytes(number(database, "SELECT pg_current_wal_insert_lsn() - '0/0'")),
          transaction_ids(number(database, "SELECT pg_snapshot_xmax(pg_current_snapshot())")),
          effects(number(database, "SELECT count(*) FROM effects")),
          keys(number(database, "SELECT count(*) FROM idempotency_keys")),
          cpu_nanoseconds(0) {
        std::istringstream pids(database.value(
            "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE datname = current_database() AND "
            "backend_type = 'client backend' AND pid <> pg_backend_pid()"));
        for (std::string pid; pids >> pid;) {
            double nanoseconds = 0;
            if (std::ifstream("/proc/" + pid + "/schedstat") >> nanoseconds) {
                cpu_nanoseconds += nanoseconds;
            }
        }
    }

    static double number(const Database& database, const std::string& sql) { return std::stod(database.value(sql)); }
};

double quantile(std::vector<double>& values, double part) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, at);
    return *at;
}

/// Ends the program at once: threads that wait for each other are left behind.
[[noreturn]] void give_up(const std::string& what, const std::exception& error) {
    std::cerr << "keyed_write_bench: " << what << ": " << error.what() << '\n';
    std::_Exit(1);
}

/// One round of one variant.
nlohmann::json run(const Settings& settings, const Variant& variant, const Database& database, Proxy& proxy,
                   const std::string& principal) {
    database.value("TRUNCATE idempotency_keys, effects");
    const std::string conninfo = (settings.delay_ms > 0 ? proxy.conninfo() : database.conninfo()) +
                                 " options='-c synchronous_commit=" + (settings.commit == "durable" ? "on" : "off") +
                                 " -c idempotency.claim=" + (variant.claims_by_lock ? "lock" : "row") + "'";
    const bool replays = settings.benchmark == "replay";
    const bool at_once = settings.benchmark == "identical_requests";
    const std::string shared_key = new_key();
    const auto count = static_cast<std::size_t>(settings.connections);
    std::vector<std::vector<double>> latencies(count);
    std::vector<int> replayed(count);
    std::barrier step(settings.connections + 1);  // all are connected; go; all have ended; close
    Clock::time_point deadline;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            try {
                const auto client = variant.connect(conninfo, principal);
                const std::string own_key = new_key();
                client->request(own_key);
                for (int warm = 0; warm < 5; ++warm) {
                    client->request(replays ? own_key : new_key());
                }
                step.arrive_and_wait();
                step.arrive_and_wait();
                do {
                    const auto begin = Clock::now();
                    replayed[i] += client->request(at_once ? shared_key : replays ? own_key : new_key());
                    latencies[i].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
                } while (!at_once && Clock::now() < deadline);
                step.arrive_and_wait();
                step.arrive_and_wait();
            } catch (const std::exception& error) {
                give_up(settings.benchmark + ", " + variant.name, error);
            }
        });
    }
    step.arrive_and_wait();
    const Counters before(database);
    proxy.round_trips();
    const auto begin = Clock::now();
    deadline = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings.seconds));
    step.arrive_and_wait();
    step.arrive_and_wait();
    const std::chrono::duration<double> duration = Clock::now() - begin;
    const int round_trips = proxy.round_trips();
    const Counters after(database);

    std::vector<double> all;
    for (const auto& some : latencies) {
        all.insert(all.end(), some.begin(), some.end());
    }
    double replay_count = 0;
    for (const int one : replayed) {
        replay_count += one;
    }
    const auto requests = static_cast<double>(all.size());
    const double effects = !variant.keyed ? requests : at_once ? 1 : replays ? 0 : requests;
    if (after.effects - before.effects != effects || after.keys - before.keys != (variant.keyed ? effects : 0) ||
        replay_count != requests - effects) {
        give_up(settings.benchmark + ", " + variant.name,
                std::runtime_error("wrong number of effects, keys or replays"));
    }
    nlohmann::json values{
        {"requests per second", requests / duration.count()},
        {"median latency, microseconds", quantile(all, 0.5)},
        {"p99 latency, microseconds", quantile(all, 0.99)},
        {"server CPU a request, microseconds", (after.cpu_nanoseconds - before.cpu_nanoseconds) / 1000 / requests},
        {"WAL a request, bytes", (after.wal_bytes - before.wal_bytes) / requests},
        {"transaction ids a request", (after.transaction_ids - before.transaction_ids) / requests},
        {"effects", effects},
        {"replays", replay_count}};
    if (settings.delay_ms > 0) {
        values["round trips a request"] = round_trips / requests;
    }
    if (at_once) {
        values["milliseconds until all are answered"] = duration.count() * 1000;
    } else if (!replays && variant.keyed) {
        values["table and indexes a key, bytes"] =
            Counters::number(database, "SELECT pg_total_relation_size('idempotency_keys')") / after.keys;
        values["dead row versions a key"] =
            Counters::number(database, "SELECT dead_tuple_count FROM pgstattuple('idempotency_keys')") / after.keys;
    }
    step.arrive_and_wait();
    return values;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 7) {
        std::cerr
            << "usage: keyed_write_bench keyed_write|replay|identical_requests CONNECTIONS durable|asynchronous DELAY_MS "
               "ROUNDS SECONDS\n";
        return 2;
    }
    try {
        const Settings settings{argv[1],           std::stoi(argv[2]), argv[3], std::stod(argv[4]), std::stoi(argv[5]),
                                std::stod(argv[6])};
        const TestDatabase database;
        database.value(schema);
        const std::string principal = database.new_principal();
        Proxy proxy(database.conninfo());
        proxy.delay_round_trips(std::chrono::microseconds(static_cast<int>(settings.delay_ms * 1000)));
        for (int round = 0; round < settings.rounds; ++round) {
            for (const Variant& variant : variants_of(settings.benchmark)) {
                const nlohmann::json values = run(settings, variant, database, proxy, principal);
                std::cout << nlohmann::json{{"benchmark", settings.benchmark},     {"variant", variant.name},
                                            {"connections", settings.connections}, {"commit", settings.commit},
                                            {"delay_ms", settings.delay_ms},       {"values", values}}
                          << std::endl;
            }
        }
    } catch (const std::exception& error) {
        give_up(argv[1], error);
    }
}
