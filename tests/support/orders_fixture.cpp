// The orders server as a process.
// Called by the HTTP tests and the crash suite.
#include "orders_fixture.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

OrdersServer::OrdersServer(const std::string& conninfo, std::vector<std::string> options, int port) {
    const std::string listen = "127.0.0.1:" + std::to_string(port);
    std::vector<std::string> words{ORDERS_SERVER, "--conninfo", conninfo, "--listen", listen};
    words.insert(words.end(), options.begin(), options.end());
    if (through_pooler()) {
        words.emplace_back("--no-prepared-statements");
    }
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        throw std::runtime_error("no pipe");
    }
    pid_ = fork();
    if (pid_ == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
    std::string line;
    for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) {
        line += c;
    }
    const std::string expected = "listening on http://127.0.0.1:";
    if (!line.starts_with(expected)) {
        throw std::runtime_error("the orders server said: " + line);
    }
    port_ = std::stoi(line.substr(expected.size()));
}

OrdersServer::~OrdersServer() {
    if (pid_ > 0) {
        signal(SIGKILL);
        wait();
    }
    close(output_);
}

void OrdersServer::signal(int number) const { kill(pid_, number); }

int OrdersServer::wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
