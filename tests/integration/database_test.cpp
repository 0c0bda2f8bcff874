// The database side by itself: the table's model, the cleanup and its schedule.
// Run by ctest against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "idempotency/unit_of_work.hpp"
#include "test_database.hpp"
#include "tools/doctor/model.hpp"

namespace {

class DatabaseTest : public ::testing::Test {
protected:
    /// Inserts keys that expired an hour ago, one second apart, the oldest first in key order.
    void insert_expired(int count) const {
        database.value(
            "INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)"
            " SELECT '" +
            principal +
            "', ('01890a5d-ac96-7b7c-8f89-' || lpad(n::text, 12, '0'))::uuid, 'x', sha256('x'),"
            " now() - interval '1 hour' + n * interval '1 second' FROM generate_series(1, " +
            std::to_string(count) + ") AS n");
    }
    [[nodiscard]] std::string keys() const { return database.value("SELECT count(*) FROM idempotency_keys"); }

    TestDatabase database;
    std::string principal = database.new_principal();
};

}  // namespace

using Migration = DatabaseTest;
using CleanupJob = DatabaseTest;
using Principal = DatabaseTest;

TEST_F(Migration, MatchesDataModel) {
    std::string columns;
    for (const auto& [name, type, not_null, default_value] : doctor::model::columns) {
        columns.append(columns.empty() ? "" : "\n")
            .append(name)
            .append(" ")
            .append(type)
            .append(not_null ? " not null" : "");
        columns.append(default_value.empty() ? "" : " default ").append(default_value);
    }
    EXPECT_EQ(database.value(R"(
        SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'not null' END,
                          'default ' || pg_get_expr(adbin, adrelid)), E'\n' ORDER BY attnum)
        FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE attrelid = 'idempotency_keys'::regclass AND attnum > 0 AND NOT attisdropped)"),
              columns);
    std::string constraints;
    for (const auto& [name, definition] : doctor::model::constraints) {
        constraints.append(constraints.empty() ? "" : "\n").append(name).append(" ").append(definition);
    }
    // Newer servers list NOT NULL as constraints too.
    EXPECT_EQ(database.value(R"(
        SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), E'\n' ORDER BY contype)
        FROM pg_constraint WHERE conrelid = 'idempotency_keys'::regclass AND contype <> 'n')"),
              constraints);
    EXPECT_EQ(database.value("SELECT string_agg(pg_get_indexdef(indexrelid), E'\\n' ORDER BY indexrelid) FROM pg_index"
                             " WHERE indrelid = 'idempotency_keys'::regclass"),
              "CREATE UNIQUE INDEX idempotency_keys_pkey ON public.idempotency_keys USING btree (principal_id, key)\n"
              "CREATE INDEX idempotency_keys_expires_at_idx ON public.idempotency_keys " +
                  std::string(doctor::model::index));
}

TEST_F(CleanupJob, DeletesExpiredInBatches) {
    insert_expired(25);
    database.value("UPDATE idempotency_keys SET expires_at = now() + interval '1 hour' WHERE key::text LIKE '%25'");
    database.value(
        "CREATE TABLE deletions (transaction_id xid8);"
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO deletions VALUES (pg_current_xact_id()); RETURN NULL; END';"
        "CREATE TRIGGER note AFTER DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION note()");
    database.value("CALL idempotency_cleanup(10)");
    EXPECT_EQ(keys(), "1");
    EXPECT_EQ(database.value(
                  "SELECT string_agg(n::text, ' ') FROM (SELECT count(*) AS n FROM deletions GROUP BY transaction_id"
                  " ORDER BY min(transaction_id)) AS batches"),
              "10 10 4");
}

TEST_F(CleanupJob, Idempotent) {
    insert_expired(5);
    database.value("CALL idempotency_cleanup()");
    database.value("CALL idempotency_cleanup()");
    EXPECT_EQ(keys(), "0");
}

TEST_F(CleanupJob, StopsOnCancel) {
    insert_expired(25);
    database.value(
        "CREATE FUNCTION stop_at_gate() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS"
        " 'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN OLD; END';"
        "CREATE TRIGGER gate BEFORE DELETE ON idempotency_keys FOR EACH ROW WHEN (OLD.key::text LIKE '%15')"
        " EXECUTE FUNCTION stop_at_gate()");
    std::string error;
    idempotency::Pool pool(database.conninfo(), 1);
    idempotency::UnitOfWork other(pool, {});
    other.run([&](idempotency::Transaction& transaction) {
        // The second batch is held by the trigger: there it is cancelled.
        transaction.execute("SELECT FROM pg_advisory_xact_lock(7)");
        auto cleanup = std::async(std::launch::async, [&] {
            try {
                database.value("CALL idempotency_cleanup(10)");
            } catch (const std::exception& cancelled) {
                error = cancelled.what();
            }
        });
        database.wait_until(
            "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'CALL%' AND wait_event_type = 'Lock'");
        database.value(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CALL%' AND wait_event_type = 'Lock'");
        cleanup.wait();
    });
    EXPECT_THAT(error, ::testing::HasSubstr("canceling statement due to user request"));
    EXPECT_EQ(keys(), "15");  // the committed batch stays deleted
    database.value("CALL idempotency_cleanup(10)");
    EXPECT_EQ(keys(), "0");
}

TEST_F(CleanupJob, WithoutPgCronThereIsAHintAndTheProcedureWorks) {
    try {
        database.value("SELECT idempotency_schedule_cleanup()");
        FAIL() << "no error";
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("extension pg_cron is not installed in this database"));
        EXPECT_THAT(error.what(), ::testing::AnyOf(::testing::HasSubstr("CREATE EXTENSION pg_cron"),
                                                   ::testing::HasSubstr("SELECT cron.schedule_in_database")));
    }
    database.value("CALL idempotency_cleanup()");
}

TEST_F(CleanupJob, IsScheduledWithPgCronAndReplacesAnOlderOne) {
    // pg_cron lives in one database of the cluster: the one that the tests are given.
    const std::string server = std::getenv("IDEMPOTENCY_TEST_CONNINFO");
    const Database cron(server + " dbname=postgres");
    cron.value(
        "DROP EXTENSION IF EXISTS pg_idempotency; DROP SCHEMA IF EXISTS scheduled CASCADE; CREATE SCHEMA scheduled; CREATE EXTENSION IF NOT EXISTS pg_cron;"
        "CREATE EXTENSION pg_idempotency SCHEMA scheduled");
    const std::string first = cron.value("SELECT scheduled.idempotency_schedule_cleanup()");
    EXPECT_EQ(cron.value("SELECT schedule || ' ' || command FROM cron.job WHERE jobname = 'idempotency_cleanup'"),
              "*/5 * * * * CALL scheduled.idempotency_cleanup()");
    EXPECT_EQ(cron.value("SET idempotency.cleanup_interval = '6h'; SELECT scheduled.idempotency_schedule_cleanup()"),
              first);
    EXPECT_EQ(cron.value("SELECT string_agg(schedule, '|') FROM cron.job WHERE jobname = 'idempotency_cleanup'"),
              "0 */6 * * *");
    EXPECT_THROW(
        cron.value("SET idempotency.cleanup_interval = '7min'; SELECT scheduled.idempotency_schedule_cleanup()"),
        std::exception);
    EXPECT_EQ(cron.value("SELECT scheduled.idempotency_unschedule_cleanup()"), "t");
    EXPECT_EQ(cron.value("SELECT scheduled.idempotency_unschedule_cleanup()"), "f");
    EXPECT_EQ(cron.value("SELECT count(*) FROM cron.job WHERE jobname = 'idempotency_cleanup'"), "0");
    cron.value("DROP SCHEMA scheduled CASCADE");
}

TEST_F(Principal, DeletingItRemovesItsKeys) {
    insert_expired(3);
    database.value("DELETE FROM principals WHERE id = '" + principal + "'");
    EXPECT_EQ(keys(), "0");
}
