// A proxy between libpq and the server: counts round trips, holds them up, and cuts a connection at a chosen message.
// Used by the round trip and fault tests, by the crash suite and by the benchmark of the stage.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

/// Listens on a unix socket in a temporary folder and speaks PostgreSQL's message format, so that it knows where each message ends.
class Proxy {
public:
    /// @param conninfo of the real server, with host=FOLDER of its socket
    explicit Proxy(const std::string& conninfo);
    ~Proxy();
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;

    /// The same database through the proxy.
    [[nodiscard]] const std::string& conninfo() const noexcept { return conninfo_; }

    /// New connections go to another server from now on.
    /// @param conninfo of that server, with host=FOLDER of its socket
    void lead_to(const std::string& conninfo);

    /// How often the client sent something and then waited for the server, since the last call.
    int round_trips() { return round_trips_.exchange(0); }

    /// Holds each round trip up by this long, as a network would.
    void delay_round_trips(std::chrono::microseconds delay) noexcept { delay_ = delay.count(); }

    enum class Direction { to_server, to_client };

    /// Cuts the connection in place of the N-th message from now in this direction; 1 is the next one. Once.
    void cut_at(Direction direction, int message);

    /// Whether the cut has happened.
    [[nodiscard]] bool cut() const noexcept { return cut_; }

private:
    void accept_connections();
    void serve(int client);
    [[nodiscard]] std::string server_socket() const;

    std::filesystem::path folder_;
    mutable std::mutex mutex_;
    std::string server_socket_;
    std::string conninfo_;
    int listening_ = -1;
    std::atomic<int> round_trips_{0};
    std::atomic<std::chrono::microseconds::rep> delay_{0};
    std::atomic<int> to_server_left_{0};
    std::atomic<int> to_client_left_{0};
    std::atomic<bool> cut_{false};
    std::atomic<bool> ending_{false};
    std::atomic<int> serving_{0};
    std::thread acceptor_;
};
