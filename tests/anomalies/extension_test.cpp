// The extension while the N-th allocation, SPI call or call of OpenSSL fails, for N from 1 until the script passes without a failure.
// Run by tests/anomalies/run against a server that has server_faults.cpp loaded, which says what is made to fail and what is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "extension_scripts.hpp"
#include "session.hpp"
#include "test_database.hpp"

namespace {

/// A kind of failure, and the error that comes of it.
struct Kind {
    std::string name;
    std::string sqlstate;
    std::string message = "";  ///< empty: any
    std::string detail = "";
    std::string hint = "";
};

const std::string no_memory = "out of memory";
const std::vector<Kind> kinds{{"allocation", "53200", no_memory, "An anomaly."},
                              {"every_allocation", "53200", no_memory},
                              {"server_malloc", "53200", no_memory},
                              {"operator_new", "53200", no_memory},
                              {"spi_error", "53100", "anomaly", "A detail.", "A hint."},
                              {"spi_error_after", "53100", "anomaly", "A detail.", "A hint."},
                              {"spi_code", "XX000"},
                              {"openssl", "XX000"}};

class ExtensionTest : public ::testing::TestWithParam<Script> {
protected:
    ExtensionTest() {
        const std::string migrate = SOURCE_FOLDER "/migrations/migrate up '" + conninfo + "'";
        principal = observer.run("INSERT INTO principals (id) VALUES (gen_random_uuid()) RETURNING id").value;
        expect_success(observer.run("CREATE TABLE IF NOT EXISTS effects (note text)"));
        if (script.partitioned) {
            EXPECT_EQ(std::system((migrate + " " SOURCE_FOLDER "/migrations/partitioned >/dev/null 2>&1").c_str()), 0);
        }
        expect_success(observer.run(filled(script.setup)));
    }

    static void expect_success(const Reply& reply) {
        EXPECT_EQ(reply.sqlstate, "") << reply.message << '\n' << reply.detail;
    }

    [[nodiscard]] std::string filled(std::string text) const {
        const std::string begin = "idempotency_begin('<principal>', '<key>', 'a', sha256('x'))";
        for (const auto& [name, value] :
             {std::pair<std::string, std::string>{"<begin>", begin}, {"<principal>", principal}, {"<key>", key}}) {
            for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size()) {
                text.replace(at, name.size(), value);
                at = name == "<begin>" ? 0 : at;
            }
        }
        return text;
    }

    [[nodiscard]] std::vector<std::string> filled(std::vector<std::string> statements) const {
        for (std::string& statement : statements) {
            statement = filled(statement);
        }
        return statements;
    }

    /// Asks another session, to whom only what is committed is there.
    void expect_that(const std::string& condition) const {
        const Reply reply = observer.run(filled("SELECT " + condition));
        EXPECT_EQ(reply.value, "t") << condition << '\n' << reply.message;
    }

    [[nodiscard]] std::unique_ptr<Session> new_session(const Kind& kind) const {
        auto session = std::make_unique<Session>(conninfo);
        expect_success(session->run({"LOAD 'pg_idempotency'", "SET anomaly.kind = " + kind.name}));
        return session;
    }

    /// Runs the script once with the N-th call failing, and once more when it failed.
    /// @return whether there was an N-th call
    bool fails_at(int n, const Session& session, const Kind& kind) {
        SCOPED_TRACE(kind.name + " " + std::to_string(n));
        key = new_key();
        expect_success(observer.run(filled(script.before)));
        std::optional<Session> holder;
        if (script.held_by_another) {
            holder.emplace(conninfo);
            EXPECT_EQ(holder->run({"BEGIN", filled("SELECT outcome FROM <begin>")}).value, "started");
        }
        expect_success(session.run("SET anomaly.fail_at = " + std::to_string(n)));
        const Reply reply = session.run(filled(script.statements));
        if (session.in_transaction_block()) {
            expect_success(session.run("ROLLBACK"));
        }
        const bool failed = session.run("SET anomaly.fail_at = 0; SHOW anomaly.failed").value != "0";
        EXPECT_TRUE(failed || reply.sqlstate.empty()) << reply.message;
        if (!reply.sqlstate.empty()) {
            expect_error(reply, kind);
            expect_that("(" + script.undone +
                        ") AND NOT EXISTS (SELECT FROM pg_locks WHERE pid = " + session.process_id() + ")");
            // The session goes on, as if nothing had been.
            expect_right(session.run(filled(script.statements)));
        } else {
            expect_right(reply);  // nothing failed, or the extension has another way
        }
        expect_that(script.done);
        return failed;
    }

    static void expect_error(const Reply& reply, const Kind& kind) {
        EXPECT_EQ(reply.sqlstate, kind.sqlstate) << reply.message << '\n' << reply.detail;
        // An error that the server had no memory to copy is told by its SQLSTATE alone.
        if (!kind.message.empty() && reply.message != no_memory) {
            EXPECT_EQ(reply.message, kind.message);
            EXPECT_EQ(reply.detail, kind.detail);
            EXPECT_EQ(reply.hint, kind.hint);
        }
    }

    void expect_right(const Reply& reply) const {
        expect_success(reply);
        EXPECT_EQ(reply.value, script.brings);
    }

    /// What a session holds where the extension leaves something longer than a transaction: C++ objects, kept plans, the server's main memory. The
    /// server's caches are its own affair: they grow with each table that is made and dropped.
    struct Holding {
        int objects;
        long bytes;
    };
    static Holding held_by(const Session& session) {
        return {std::stoi(session.run("SHOW anomaly.objects").value),
                std::stol(session
                              .run("SELECT sum(used_bytes) FROM pg_backend_memory_contexts"
                                   " WHERE name IN ('TopMemoryContext', 'ErrorContext') OR name LIKE '%Plan%'")
                              .value)};
    }

    /// A sample: each of the first points, then one in a growing number.
    static int sampled(int n) { return n + 1 + n / 8; }

    const Script& script = GetParam();
    const std::unique_ptr<TestDatabase> database = script.needs_pg_cron ? nullptr : std::make_unique<TestDatabase>();
    const std::string conninfo = database != nullptr ? database->conninfo() : std::getenv("IDEMPOTENCY_TEST_CONNINFO");
    const Session observer{conninfo};
    std::string principal;
    std::string key;

    static constexpr int never = 1'000'000;
    static constexpr int warm_after = 8;  ///< the server replaces a plan at the sixth execution
};

TEST_P(ExtensionTest, FailsWithoutATrace) {
    for (const Kind& kind : kinds) {
        // Each time in a new session, so that what is done once a session fails as well.
        // A sample will do where the points are the server's own, or those of other kinds again.
        const bool sample = kind.name == "server_malloc" || kind.name == "every_allocation";
        int in_new_sessions = 0;
        for (int n = 1; !HasFailure() && fails_at(n, *new_session(kind), kind); n = sample ? sampled(n) : n + 1) {
            ++in_new_sessions;
        }
        if (in_new_sessions == 0) {
            continue;
        }
        // Then in one session, whose memory stays flat once its caches are full.
        const std::unique_ptr<Session> session = new_session(kind);
        for (int i = 0; i < warm_after && !HasFailure(); ++i) {
            fails_at(i == 0 ? 1 : never, *session, kind);
        }
        held_by(*session);
        const Holding before = held_by(*session);
        int in_one_session = 0;
        for (int n = 1; !HasFailure() && fails_at(n, *session, kind); n = sampled(n)) {
            ++in_one_session;
        }
        const Holding after = held_by(*session);
        EXPECT_EQ(after.objects, before.objects) << kind.name;
        EXPECT_LE(after.bytes, before.bytes + 1024) << kind.name;
        RecordProperty(kind.name, std::to_string(in_new_sessions) + "+" + std::to_string(in_one_session));
    }
}

std::vector<Script> scripts_of_this_server() {
    std::vector<Script> scripts = extension_scripts();
    if (std::getenv("ANOMALIES_WITH_PG_CRON") == nullptr) {
        std::erase_if(scripts, [](const Script& script) { return script.needs_pg_cron; });
    }
    return scripts;
}

INSTANTIATE_TEST_SUITE_P(Extension, ExtensionTest, ::testing::ValuesIn(scripts_of_this_server()),
                         [](const auto& parameter) { return parameter.param.name; });

}  // namespace
