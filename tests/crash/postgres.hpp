// A PostgreSQL server as a child process: killed, started again, copied to a standby, promoted.
// Used by faults.cpp and main.cpp.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace crash {

class Postgres {
public:
    /// Starts a server on home/data, with its socket in home.
    /// @param programs folder of postgres, pg_basebackup
    /// @param log      file that it appends to
    Postgres(std::filesystem::path programs, std::filesystem::path home, std::filesystem::path log);
    /// Kills it and removes home/data.
    ~Postgres();
    Postgres(const Postgres&) = delete;
    Postgres& operator=(const Postgres&) = delete;

    [[nodiscard]] std::string conninfo() const;
    /// The first column of the first row. Waits while the server recovers.
    [[nodiscard]] std::string value(const std::string& sql) const;

    /// Starts it again after kill_all; returns when it accepts connections.
    void start();
    /// Sends SIGQUIT or SIGKILL to the postmaster, and waits until it and all of its children have ended.
    void kill_all(int signal);
    /// SIGKILL to a backend that serves a client. The server then restarts itself.
    void kill_backend(std::mt19937_64& chance) const;

    /// A copy that streams from this server, which from now on tells of no commit before the copy has it.
    [[nodiscard]] std::unique_ptr<Postgres> make_standby(const std::filesystem::path& home) const;
    void promote() const;

private:
    [[nodiscard]] std::vector<pid_t> children() const;

    std::filesystem::path programs_;
    std::filesystem::path home_;
    std::filesystem::path log_;
    pid_t postmaster_ = -1;
};

}  // namespace crash
