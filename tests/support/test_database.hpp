// A database of its own for a test, with the migrations and the example's tables in it.
// Used by the integration tests.
#pragma once

#include <string>
#include <utility>

#include "test_keys.hpp"

/// Runs SQL on connections of its own, one a call.
class Database {
public:
    explicit Database(std::string conninfo) : conninfo_(std::move(conninfo)) {}

    [[nodiscard]] const std::string& conninfo() const noexcept { return conninfo_; }

    /// @return the first column of the first row, "" for none
    /// @throws std::runtime_error with the server's message
    std::string value(const std::string& sql) const;

private:
    std::string conninfo_;
};

/// Made from a template that the first one prepares; dropped at the end, with whoever is connected.
class TestDatabase : public Database {
public:
    TestDatabase();
    ~TestDatabase();
    TestDatabase(const TestDatabase&) = delete;
    TestDatabase& operator=(const TestDatabase&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// The same database as an application reaches it: through a pooler when the environment names one.
    [[nodiscard]] std::string application_conninfo() const;

    /// A new principal's id.
    [[nodiscard]] std::string new_principal() const;

    /// Waits until a query gives "t"; fails the test after half a minute.
    void wait_until(const std::string& sql) const;

private:
    explicit TestDatabase(const std::string& name);

    std::string name_;
};

/// Whether applications reach the database through a transaction pooler, so that they must not name prepared statements.
[[nodiscard]] bool through_pooler();
