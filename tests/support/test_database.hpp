// A database of its own for a test, with the migrations and the example's tables in it.
// Used by the integration tests.
#pragma once

#include <string>
#include <vector>

/// Made from a template that the first one prepares; dropped at the end, with whoever is connected.
class TestDatabase {
public:
    TestDatabase();
    ~TestDatabase();
    TestDatabase(const TestDatabase&) = delete;
    TestDatabase& operator=(const TestDatabase&) = delete;

    [[nodiscard]] const std::string& conninfo() const noexcept { return conninfo_; }

    /// Runs SQL on a connection of its own.
    /// @return the first column of the first row, "" for none
    std::string value(const std::string& sql) const;

    /// A new principal's id.
    [[nodiscard]] std::string new_principal() const;

    /// Waits until a query gives "t"; fails the test after half a minute.
    void wait_until(const std::string& sql) const;

private:
    std::string name_;
    std::string conninfo_;
};

/// A new UUIDv7 in text form.
[[nodiscard]] std::string new_key();
