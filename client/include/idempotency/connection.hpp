// Connections to PostgreSQL and where they come from.
// Used by the unit of work; an application brings its own source by implementing ConnectionSource.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

struct pg_conn;  // libpq's PGconn

namespace idempotency {

/// One connection to PostgreSQL, closed at the end of its life. Move-only; one thread at a time.
class Connection {
public:
    /// Connects and waits until connected.
    /// @param conninfo a libpq connection string or URI; empty: libpq's environment variables
    /// @throws Unavailable when the server refuses or does not answer before `deadline`
    explicit Connection(const std::string& conninfo,
                        std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    Connection(Connection&&) noexcept;
    Connection& operator=(Connection&&) noexcept;
    ~Connection();

    /// The libpq handle, still owned by this object. While a Transaction is alive use Transaction::native_handle() instead.
    [[nodiscard]] pg_conn* native_handle() const noexcept;

    /// Alive as far as libpq knows, and outside any transaction.
    [[nodiscard]] bool reusable() const noexcept;

    /// What the shim remembers of this connection (names of prepared statements). For the shim only.
    struct State;
    [[nodiscard]] State& state() noexcept { return *state_; }

private:
    std::unique_ptr<State> state_;
};

/// Where the stage and the unit of work get their connections. Implementations are safe to call from several threads.
class ConnectionSource {
public:
    virtual ~ConnectionSource() = default;

    /// Lends a connection that is outside any transaction.
    /// @throws Unavailable when none can be had before `deadline`
    [[nodiscard]] virtual std::unique_ptr<Connection> acquire(std::chrono::steady_clock::time_point deadline) = 0;

    /// Takes a connection back, in whatever state it is; one that is not reusable() is closed.
    virtual void release(std::unique_ptr<Connection> connection) noexcept = 0;
};

/// A small pool: connects when needed, keeps idle connections, replaces broken ones, survives a server restart.
class Pool final : public ConnectionSource {
public:
    /// @param conninfo as for Connection
    /// @param maximum  connections at most, idle and lent together
    Pool(std::string conninfo, std::size_t maximum);
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() override;

    [[nodiscard]] std::unique_ptr<Connection> acquire(std::chrono::steady_clock::time_point deadline) override;
    void release(std::unique_ptr<Connection> connection) noexcept override;

private:
    struct Shared;
    std::unique_ptr<Shared> shared_;
};

}  // namespace idempotency
