// The extension while the N-th allocation, SPI call or call of OpenSSL fails, for N from 1 until nothing fails any more.
// Run by tests/anomalies/run against a server that has server_faults.cpp loaded.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test_database.hpp"

namespace {

/// What one statement brought.
struct Reply {
    std::string sqlstate;  ///< empty: it succeeded
    std::string message;
    std::string value;  ///< columns and rows joined by |
};

class Session {
public:
    explicit Session(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str()), PQfinish) {
        PQsetNoticeProcessor(
            connection_.get(), [](void*, const char*) {}, nullptr);
    }

    Reply run(const std::string& sql) const {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection_.get(), sql.c_str()), PQclear);
        const auto field = [&](int code) {
            const char* const text = PQresultErrorField(result.get(), code);
            return std::string(text != nullptr ? text : "");
        };
        Reply reply;
        const ExecStatusType status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            reply.sqlstate = field(PG_DIAG_SQLSTATE).empty() ? "no connection" : field(PG_DIAG_SQLSTATE);
            reply.message = field(PG_DIAG_MESSAGE_PRIMARY) + "/" + field(PG_DIAG_MESSAGE_DETAIL) + "/" +
                            field(PG_DIAG_MESSAGE_HINT);
        }
        for (int row = 0; row < PQntuples(result.get()); ++row) {
            for (int column = 0; column < PQnfields(result.get()); ++column) {
                reply.value += (reply.value.empty() ? "" : "|") + std::string(PQgetvalue(result.get(), row, column));
            }
        }
        return reply;
    }

    /// One statement after the other, up to the first that fails; then the transaction is rolled back.
    Reply run(const std::vector<std::string>& statements, const std::map<std::string, std::string>& names) const {
        Reply all;
        for (const std::string& statement : statements) {
            Reply one = run(filled(statement, names));
            if (!one.sqlstate.empty()) {
                if (PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) {
                    run("ROLLBACK");
                }
                return one;
            }
            all.value += (all.value.empty() || one.value.empty() ? "" : "|") + one.value;
        }
        return all;
    }

    static std::string filled(std::string text, const std::map<std::string, std::string>& names) {
        for (const auto& [name, value] : names) {
            for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size())) {
                text.replace(at, name.size(), value);
            }
        }
        return text;
    }

private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};

/// What is run while something fails. <begin>, <key> and other words in brackets are filled in, the key anew each time.
struct Script {
    std::string name;
    std::vector<std::string> once;    ///< in the new database
    std::vector<std::string> before;  ///< each time, without a fault
    std::vector<std::string> sql;
    std::string expected;          ///< what it brings
    std::string check;             ///< after it, also by another session: gives "t"
    std::string undone = "";       ///< after a failure: gives "t"
    bool holder = false;           ///< another session holds the key
    std::string database = "";     ///< in this one instead of a new one
};

const std::string answer = R"({"id": 7})";
const std::vector<std::string> first_call{"BEGIN", "INSERT INTO effects VALUES ('<key>')", "SELECT outcome FROM <begin>",
                                          "SELECT idempotency_complete('<principal>', '<key>', 201, '" + answer + "')",
                                          "COMMIT"};
const std::string one_effect =
    "SELECT (SELECT count(*) FROM effects WHERE note = '<key>') = 1 AND (SELECT outcome || response_status || "
    "response_body FROM <begin>) = 'replay201" +
    answer + "'";
const std::string no_effect = "SELECT NOT EXISTS (SELECT FROM effects WHERE note = '<key>')";
const std::string key_is_free = " AND NOT EXISTS (SELECT FROM idempotency_keys WHERE key = '<key>')";

std::vector<std::string> with(const std::string& setting, std::vector<std::string> statements) {
    statements.insert(statements.begin() + 1, setting);
    return statements;
}

const std::string least_key_an_hour_ago =
    "rpad(lpad(to_hex((extract(epoch FROM now() - interval '1 hour') * 1000)::bigint), 12, '0'), 32, '0')::uuid";

std::vector<Script> scripts() {
    std::vector<Script> all;
    all.push_back({"first_call", {}, {}, first_call, "started|" + answer, one_effect, no_effect + key_is_free});
    all.push_back({"first_call_by_lock", {}, {}, with("SET LOCAL idempotency.claim = lock", first_call),
                   "started|" + answer, one_effect, no_effect + key_is_free});
    all.push_back({"begin_request",
                   {},
                   {},
                   {"BEGIN", "INSERT INTO effects VALUES ('<key>')",
                    "SELECT outcome FROM idempotency_begin_request('<principal>', '\"<key>\"', 'a', 'POST', '/orders', "
                    "convert_to('{\"b\": [' || repeat('{\"z\": 1.50, \"a\": \"x\"},', 300) || '0]}', 'UTF8'), '1 day')",
                    "SELECT idempotency_complete('<principal>', '<key>', 201, '" + answer + "')", "COMMIT"},
                   "started|" + answer,
                   "SELECT (SELECT count(*) FROM effects WHERE note = '<key>') = 1",
                   no_effect + key_is_free});
    all.push_back({"savepoints_and_many_keys",
                   {},
                   {},
                   {"BEGIN", "INSERT INTO effects VALUES ('<key>')", "SAVEPOINT s", "SELECT outcome FROM <begin>",
                    "ROLLBACK TO s",
                    "DO $$ DECLARE k uuid; BEGIN FOR i IN 1..9 LOOP k := gen_random_uuid(); PERFORM "
                    "idempotency_begin('<principal>', k, 'a', sha256('x')); PERFORM idempotency_complete('<principal>', "
                    "k, 200); END LOOP; END $$",
                    "SELECT outcome FROM <begin>",
                    "SELECT idempotency_complete('<principal>', '<key>', 201, '" + answer + "')", "COMMIT"},
                   "started|started|" + answer,
                   one_effect,
                   no_effect + key_is_free});
    for (const std::string way : {"row", "lock"}) {
        const std::string by = way == "row" ? "" : "_by_lock";
        const std::string setting = "SET LOCAL idempotency.claim = " + way;
        all.push_back({"replay" + by, {}, first_call, {"BEGIN", setting, "SELECT outcome, response_body FROM <begin>", "COMMIT"},
                       "replay|" + answer, one_effect});
        all.push_back({"expired_key" + by,
                       {},
                       {"SELECT idempotency_save_final('<principal>', '<key>', 'a', sha256('x'), 404, '{}', NULL, '1 s', "
                        "now() - interval '1 hour')"},
                       with(setting, first_call),
                       "started|" + answer,
                       one_effect,
                       no_effect});
    }
    all.push_back({"reuse", {}, first_call,
                   {"SELECT outcome FROM idempotency_begin('<principal>', '<key>', 'a', sha256('other'))"}, "reuse",
                   one_effect});
    all.push_back({"in_progress", {}, {},
                   {"BEGIN", "SET LOCAL idempotency.wait_timeout = 1", "SELECT outcome FROM <begin>", "ROLLBACK"},
                   "in_progress", "SELECT true", "", true});
    all.push_back({"left_in_progress", {}, {},
                   {"BEGIN", "INSERT INTO effects VALUES ('<key>')", "SELECT outcome FROM <begin>",
                    "SET LOCAL idempotency.require_complete = off", "COMMIT"},
                   "started", "SELECT outcome = 'in_progress' FROM <begin>", no_effect + key_is_free});
    all.push_back({"save_final", {}, {},
                   {"SELECT idempotency_save_final('<principal>', '<key>', 'a', sha256('x'), 404, '{\"no\": 1}')"},
                   R"({"no": 1})", "SELECT outcome || response_status = 'replay404' FROM <begin>",
                   "SELECT true" + key_is_free});
    all.push_back({"large_body", {}, {},
                   {"BEGIN", "INSERT INTO effects VALUES ('<key>')", "SELECT outcome FROM <begin>",
                    "SELECT length(idempotency_complete('<principal>', '<key>', 201, jsonb_build_object('id', (SELECT "
                    "string_agg(md5(n::text), '') FROM generate_series(1, 20000) AS n)))::text)",
                    "COMMIT"},
                   "started|640010", "SELECT length(response_body::text) = 640010 FROM <begin>",
                   no_effect + key_is_free});
    all.push_back({"canonical_json", {}, {},
                   {"SELECT md5(idempotency_canonical_json('[' || repeat('{\"z\": 1.50, \"a\": \"x\"},', 300) || '0]'))"},
                   "", "SELECT true"});
    all.push_back({"stats", {}, {}, {"SELECT estimated FROM idempotency_stats()"}, "f", "SELECT true"});
    all.push_back({"stats_of_a_large_table",
                   {"INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at) SELECT "
                    "'<principal>', gen_random_uuid(), repeat('a', 1000), sha256('x'), now() + interval '1 hour' FROM "
                    "generate_series(1, 9000)",
                    "ANALYZE idempotency_keys"},
                   {},
                   {"SELECT estimated, in_progress FROM idempotency_stats()"},
                   "t|9000",
                   "SELECT true"});
    const std::string all_gone = "SELECT NOT EXISTS (SELECT FROM idempotency_keys WHERE expires_at < now())";
    all.push_back({"cleanup", {},
                   {"INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at) SELECT "
                    "'<principal>', gen_random_uuid(), 'a', sha256('x'), now() - n * interval '1 min' FROM "
                    "generate_series(1, 3) AS n"},
                   {"CALL idempotency_cleanup(2)"}, "", all_gone});
    all.push_back({"maintain_partitions",
                   {"<partitioned>"},
                   {"DO $$ DECLARE p regclass; BEGIN FOR p IN SELECT inhrelid FROM pg_inherits WHERE inhparent = "
                    "'idempotency_keys'::regclass LOOP IF p <> 'idempotency_keys_default'::regclass THEN EXECUTE "
                    "'DROP TABLE ' || p; END IF; END LOOP; EXECUTE format('CREATE TABLE idempotency_keys_old PARTITION "
                    "OF idempotency_keys FOR VALUES FROM (MINVALUE) TO (%L)', " +
                        least_key_an_hour_ago + "); END $$",
                    "INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at) VALUES "
                    "('<principal>', '00000000-0000-7000-8000-000000000001', 'a', sha256('x'), now() - interval '1 h'), "
                    "('<principal>', '<key>', 'a', sha256('x'), now() + interval '1 hour'), "
                    "('<principal>', 'ffffffff-0000-7000-8000-000000000001', 'a', sha256('x'), now() - interval '1 h')"},
                   {"CALL idempotency_maintain_partitions()"},
                   "",
                   all_gone + " AND to_regclass('idempotency_keys_old') IS NULL AND NOT EXISTS (SELECT FROM "
                              "idempotency_keys_default) AND (SELECT count(*) >= 3 FROM pg_inherits WHERE inhparent = "
                              "'idempotency_keys'::regclass) AND EXISTS (SELECT FROM idempotency_keys WHERE key = '<key>')"});
    if (std::getenv("ANOMALIES_WITH_PG_CRON") != nullptr) {
        const std::string jobs = "SELECT count(*) = 2 FROM cron.job WHERE active AND jobname LIKE 'idempotency_cleanup%'";
        all.push_back({"schedule", {}, {"DELETE FROM cron.job"}, {"SELECT idempotency_schedule_cleanup() > 0"}, "t", jobs,
                       "SELECT NOT EXISTS (SELECT FROM cron.job)", false, "postgres"});
        all.push_back({"unschedule", {}, {"SELECT idempotency_schedule_cleanup()"},
                       {"SELECT idempotency_unschedule_cleanup()"}, "t", "SELECT NOT EXISTS (SELECT FROM cron.job)", jobs,
                       false, "postgres"});
    }
    return all;
}

/// What fails, and the error that must come of it.
struct Kind {
    std::string name;
    std::vector<std::string> sqlstates;
    std::string message;  ///< whole; empty: any
};

const std::vector<Kind> kinds{{"allocation", {"53200"}, "out of memory/An anomaly./"},
                              {"every_allocation", {"53200"}, "out of memory//"},
                              {"operator_new", {"53200"}, "out of memory//"},
                              {"spi_error", {"53100"}, "anomaly/A detail./A hint."},
                              {"spi_error_after", {"53100"}, "anomaly/A detail./A hint."},
                              {"spi_code", {"XX000"}, ""},
                              {"openssl", {"53200"}, ""}};

class ExtensionTest : public ::testing::TestWithParam<std::tuple<Script, Kind>> {
protected:
    ExtensionTest() {
        const bool prepared = current_script == script.name;
        if (!script.database.empty()) {
            conninfo = std::string(std::getenv("IDEMPOTENCY_TEST_CONNINFO")) + " dbname=" + script.database;
        } else {
            if (!prepared) {
                database = std::make_unique<TestDatabase>();
            }
            conninfo = database->conninfo();
        }
        current_script = script.name;
        other = std::make_unique<Session>(conninfo);
        const Session& session = *other;
        names["<principal>"] =
            session.run("INSERT INTO principals (id) VALUES (gen_random_uuid()) RETURNING id").value;
        if (prepared) {
            return;
        }
        session.run("CREATE TABLE IF NOT EXISTS effects (note text)");
        for (const std::string& statement : script.once) {
            if (statement == "<partitioned>") {
                const std::string migrate = SOURCE_FOLDER "/migrations/migrate up '" + conninfo + "' ";
                EXPECT_EQ(std::system((migrate + SOURCE_FOLDER "/migrations/partitioned >/dev/null").c_str()), 0);
            } else {
                expect_success(session.run({statement}, names));
            }
        }
    }

    static void TearDownTestSuite() { database.reset(); }

    static void expect_success(const Reply& reply) { EXPECT_EQ(reply.sqlstate, "") << reply.message; }

    void expect_true(const Session& session, const std::string& query) const {
        const Reply reply = session.run({query}, names);
        EXPECT_EQ(reply.value, "t") << query << reply.message;
    }

    /// Runs the script once with the N-th call failing.
    /// @return whether one did
    bool fails_at(int n, const Session& session) {
        names["<key>"] = new_key();
        names["<begin>"] = "idempotency_begin('" + names["<principal>"] + "', '" + names["<key>"] + "', 'a', sha256('x'))";
        expect_success(other->run("ROLLBACK"));
        expect_success(other->run(script.before, names));
        if (script.holder) {
            other->run("BEGIN");
            EXPECT_EQ(other->run({"SELECT outcome FROM <begin>"}, names).value, "started");
        }
        expect_success(session.run("SET anomaly.fail_at = " + std::to_string(n)));
        const Reply reply = session.run(script.sql, names);
        const bool failed = session.run("SHOW anomaly.failed").value != "0";
        expect_success(session.run("SET anomaly.fail_at = 0"));
        if (failed) {
            ++faults;
            EXPECT_TRUE(std::ranges::count(kind.sqlstates, reply.sqlstate) == 1) << reply.sqlstate << reply.message;
            EXPECT_TRUE(kind.message.empty() || reply.message == kind.message ||
                        reply.message.starts_with("out of memory/")) << reply.message;
            if (!script.undone.empty()) {
                expect_true(session, script.undone);
            }
            expect_true(session, "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()");
            // The same session goes on, as if nothing had been.
            expect_right(session.run(script.sql, names));
        } else {
            expect_right(reply);
        }
        expect_true(session, script.check);
        expect_true(*other, script.check);
        return failed;
    }

    void expect_right(const Reply& reply) const {
        expect_success(reply);
        if (!script.expected.empty()) {
            EXPECT_EQ(reply.value, script.expected);
        }
    }

    std::unique_ptr<Session> new_session() const {
        auto session = std::make_unique<Session>(conninfo);
        expect_success(session->run("LOAD 'pg_idempotency'"));
        expect_success(session->run("SET anomaly.kind = " + kind.name));
        return session;
    }

    static long memory_of(const Session& session) {
        return std::stol(session.run("SELECT sum(used_bytes) FROM pg_backend_memory_contexts").value);
    }

    const Script& script = std::get<0>(GetParam());
    const Kind& kind = std::get<1>(GetParam());
    // One for the tests of a script, which come one after the other.
    static inline std::unique_ptr<TestDatabase> database;
    static inline std::string current_script;
    std::string conninfo;
    std::unique_ptr<Session> other;
    std::map<std::string, std::string> names;
    int faults = 0;

    static constexpr int never = 1'000'000;
    static constexpr int cached_after = 8;  ///< the server replaces a plan at the sixth execution
};

TEST_P(ExtensionTest, Fails) {
    // Each time in a new session, so that what is done once a session fails as well.
    int last = 1;
    while (fails_at(last, *new_session()) && !HasFailure()) {
        ++last;
    }
    // Then in one session, whose memory must not grow once the server's caches are full.
    const std::unique_ptr<Session> session = new_session();
    for (int i = 0; i < cached_after && !HasFailure(); ++i) {
        fails_at(never, *session);
    }
    long before = 0;
    for (int round = 1; round <= 2 && !HasFailure(); ++round) {
        before = memory_of(*session);
        for (int n = 1; n < last && fails_at(n, *session) && !HasFailure(); ++n) {}
    }
    EXPECT_LE(memory_of(*session), before + 1024);
    RecordProperty("faults", faults);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Script, Kind>>& info) {
    return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Extension, ExtensionTest,
                         ::testing::Combine(::testing::ValuesIn(scripts()), ::testing::ValuesIn(kinds)), name_of);

}  // namespace
