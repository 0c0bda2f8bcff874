// The real orders server as a process, on a database of its own, and an HTTP client for it.
// Used by the HTTP tests and the crash suite.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "orders_client.hpp"
#include "test_database.hpp"

/// Killed at the end if it still runs.
class OrdersServer {
public:
    /// @param port 0 picks a free one
    explicit OrdersServer(const std::string& conninfo, std::vector<std::string> options = {"--demo", "--threads", "64"},
                          int port = 0);
    ~OrdersServer();
    OrdersServer(const OrdersServer&) = delete;
    OrdersServer& operator=(const OrdersServer&) = delete;

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] int port() const noexcept { return port_; }
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

    /// Sends the signal. Does not wait.
    void signal(int number) const;
    /// Waits for the end.
    /// @return the exit status, or 128 plus the signal that ended it
    int wait();

private:
    pid_t pid_ = -1;
    int output_ = -1;
    int port_ = 0;
};

/// A database and the server on it.
struct OrdersServerOnDatabase {
    explicit OrdersServerOnDatabase(std::vector<std::string> options)
        : server(database.application_conninfo(), std::move(options)) {}

    TestDatabase database;
    OrdersServer server;
};

class OrdersTest : public ::testing::Test, protected OrdersServerOnDatabase, protected OrdersClient {
protected:
    OrdersTest() : OrdersTest({"--demo", "--threads", "64", "--lock-timeout-ms", "5000"}) {}
    explicit OrdersTest(std::vector<std::string> options)
        : OrdersServerOnDatabase(std::move(options)), OrdersClient(server.url(), database.new_principal()) {}

    [[nodiscard]] int orders() const { return std::stoi(database.value("SELECT count(*) FROM orders")); }
    [[nodiscard]] int keys() const { return std::stoi(database.value("SELECT count(*) FROM idempotency_keys")); }

    /// Waits until a request of the server sleeps in the database.
    void wait_until_asleep() const {
        database.wait_until(
            "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'");
    }
};
