// PostgreSQL servers of the crash suite.
// Called by faults.cpp and main.cpp.
#include "postgres.hpp"

#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "test_database.hpp"
#include "wait_until.hpp"

namespace crash {
namespace {

/// fsync is off: only processes die here, and what they wrote stays with the operating system. A machine that loses power is what fsync is for, and
/// no test can take its power away.
constexpr const char* settings[] = {"listen_addresses=",
                                    "fsync=off",
                                    "max_connections=100",
                                    "shared_buffers=32MB",
                                    "wal_keep_size=256MB",
                                    "wal_retrieve_retry_interval=100ms",
                                    "autovacuum_naptime=10s",
                                    "log_min_messages=warning",
                                    "log_min_error_statement=panic"};

}  // namespace

Postgres::Postgres(std::filesystem::path programs, std::filesystem::path home, std::filesystem::path log)
    : programs_(std::move(programs)), home_(std::move(home)), log_(std::move(log)) {
    start();
}

Postgres::~Postgres() {
    if (postmaster_ > 0) {
        kill_all(SIGQUIT);
    }
    std::filesystem::remove_all(home_ / "data");
}

std::string Postgres::conninfo() const { return "host=" + home_.string() + " port=5432 user=postgres dbname=postgres"; }

std::string Postgres::value(const std::string& sql) const {
    std::string result;
    wait_until("an answer to " + sql, [&] {
        try {
            result = Database(conninfo()).value(sql);
            return true;
        } catch (const std::runtime_error&) {
            return false;
        }
    });
    return result;
}

void Postgres::start() {
    const std::string program = programs_ / "postgres", data = home_ / "data";
    std::vector<std::string> words{program, "-D", data, "-c", "unix_socket_directories=" + home_.string()};
    for (const char* const setting : settings) {
        words.insert(words.end(), {"-c", setting});
    }
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    wait_until("the server on " + data, [&] {
        // It ends again when a child of the one that was killed still holds the shared memory.
        if (postmaster_ > 0 && waitpid(postmaster_, nullptr, WNOHANG) == postmaster_) {
            postmaster_ = -1;
        }
        if (postmaster_ <= 0) {
            postmaster_ = fork();
            if (postmaster_ == 0) {
                const int log = open(log_.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
                dup2(log, STDOUT_FILENO);
                dup2(log, STDERR_FILENO);
                execv(arguments[0], arguments.data());
                _exit(127);
            }
        }
        return PQping(conninfo().c_str()) == PQPING_OK;
    });
}

void Postgres::kill_all(int signal) {
    // The suite is the reaper of what the postmaster leaves behind (main.cpp), so their end can be waited for.
    const std::vector<pid_t> orphans = children();
    kill(postmaster_, signal);
    waitpid(std::exchange(postmaster_, -1), nullptr, 0);
    for (const pid_t orphan : orphans) {
        waitpid(orphan, nullptr, 0);
    }
}

void Postgres::kill_backend(std::mt19937_64& chance) const {
    std::vector<pid_t> backends;
    wait_until("a backend", [&] {
        for (const pid_t child : children()) {
            std::ifstream file("/proc/" + std::to_string(child) + "/cmdline");
            const std::string title{std::istreambuf_iterator<char>(file), {}};
            if (title.find("[local]") != std::string::npos && title.find("walsender") == std::string::npos) {
                backends.push_back(child);
            }
        }
        return !backends.empty();
    });
    kill(backends[std::uniform_int_distribution<std::size_t>(0, backends.size() - 1)(chance)], SIGKILL);
}

std::unique_ptr<Postgres> Postgres::make_standby(const std::filesystem::path& home) const {
    std::filesystem::create_directory(home);
    const std::string backup = (programs_ / "pg_basebackup").string() + " --dbname='" + conninfo() +
                               "' --pgdata=" + (home / "data").string() +
                               " --checkpoint=fast --wal-method=stream --write-recovery-conf --no-sync";
    if (std::system(backup.c_str()) != 0) {
        throw std::runtime_error("failed: " + backup);
    }
    auto standby = std::make_unique<Postgres>(programs_, home, log_);
    // After the copy was made: once promoted it has no standby to wait for.
    (void)value("ALTER SYSTEM SET synchronous_standby_names = '*'");
    (void)value("SELECT pg_reload_conf()");
    wait_until("synchronous replication", [&] {
        return value("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'") ==
               "1";
    });
    return standby;
}

void Postgres::promote() const {
    if (value("SELECT pg_promote()") != "t") {
        throw std::runtime_error("the standby was not promoted");
    }
}

std::vector<pid_t> Postgres::children() const {
    const std::string postmaster = std::to_string(postmaster_);
    std::ifstream file("/proc/" + postmaster + "/task/" + postmaster + "/children");
    return {std::istream_iterator<pid_t>(file), {}};
}

}  // namespace crash
