// Databases for tests.
// Called by the integration tests.
#include "test_database.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "core/uuid.hpp"

namespace {

const std::string& server_conninfo() {
    static const std::string conninfo = [] {
        const char* const value = std::getenv("IDEMPOTENCY_TEST_CONNINFO");
        if (value == nullptr) {
            throw std::runtime_error(
                "set IDEMPOTENCY_TEST_CONNINFO to a cluster of tests/support/cluster, or run make check");
        }
        return std::string(value);
    }();
    return conninfo;
}

std::string with_database(const std::string& name) { return server_conninfo() + " dbname=" + name; }

std::string run_sql(const std::string& conninfo, const std::string& sql) {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(conninfo.c_str()), PQfinish);
    PQsetNoticeProcessor(
        connection.get(), [](void*, const char*) {}, nullptr);
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), sql.c_str()), PQclear);
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        throw std::runtime_error(PQerrorMessage(connection.get()));
    }
    return PQntuples(result.get()) > 0 && PQnfields(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

void run_program(const std::string& command) {
    if (std::system(command.c_str()) != 0) {
        throw std::runtime_error("failed: " + command);
    }
}

/// Several test processes may come at once: one prepares the template, the others wait for it.
void prepare_template() {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> lock(PQconnectdb(with_database("postgres").c_str()), PQfinish);
    const std::unique_ptr<PGresult, decltype(&PQclear)> locked(PQexec(lock.get(), "SELECT pg_advisory_lock(1)"),
                                                               PQclear);
    if (run_sql(with_database("postgres"),
                "SELECT count(*) FROM pg_database WHERE datistemplate AND datname = 'idempotency_test_template'") ==
        "1") {
        return;
    }
    run_sql(with_database("postgres"), "DROP DATABASE IF EXISTS idempotency_test_template");
    run_sql(with_database("postgres"), "CREATE DATABASE idempotency_test_template");
    const std::string conninfo = with_database("idempotency_test_template");
    run_program(SOURCE_FOLDER "/migrations/migrate up '" + conninfo + "' >/dev/null");
    run_program("psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname '" + conninfo +
                "' --file " SOURCE_FOLDER "/client/examples/orders_server/schema.sql");
    run_sql(with_database("postgres"), "ALTER DATABASE idempotency_test_template IS_TEMPLATE true");
}

/// A connection string of PgBouncer in front of the cluster, or null.
const char* pooler() { return std::getenv("IDEMPOTENCY_TEST_POOLER"); }

std::uint64_t random_bits() {
    thread_local std::mt19937_64 generator = [] {
        std::random_device device;
        return std::mt19937_64((static_cast<std::uint64_t>(device()) << 32) | device());
    }();
    return generator();
}

}  // namespace

std::string Database::value(const std::string& sql) const { return run_sql(conninfo_, sql); }

TestDatabase::TestDatabase() : TestDatabase("test_" + std::to_string(random_bits())) {}

TestDatabase::TestDatabase(const std::string& name) : Database(with_database(name)), name_(name) {
    static const bool prepared = (prepare_template(), true);
    (void)prepared;
    run_sql(with_database("postgres"), "CREATE DATABASE " + name_ + " TEMPLATE idempotency_test_template");
}

TestDatabase::~TestDatabase() {
    try {
        run_sql(with_database("postgres"), "DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)");
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
}

std::string TestDatabase::new_principal() const {
    return value("INSERT INTO principals (id) VALUES (gen_random_uuid()) RETURNING id");
}

void TestDatabase::wait_until(const std::string& sql) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (value(sql) != "t") {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited in vain for: " << sql;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

bool through_pooler() { return pooler() != nullptr; }

std::string TestDatabase::application_conninfo() const {
    return through_pooler() ? std::string(pooler()) + " dbname=" + name_ : conninfo();
}
