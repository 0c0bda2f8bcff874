// The orders server: a small service on an HTTP library, the shim and PostgreSQL.
// Started by people, by the demo and by the HTTP tests.
#include <CLI/CLI.hpp>
#include <prometheus/text_serializer.h>
#include <csignal>
#include <strings.h>

#include <chrono>
#include <iostream>
#include <mutex>

#include "idempotency/problem.hpp"
#include "idempotency/adapters/prometheus.hpp"
#include "server.hpp"

namespace {

using idempotency::Actor;
using idempotency::Problem;
namespace http = idempotency::http;

struct Options {
    std::string conninfo;
    std::string listen;
    int lock_timeout_ms = 5000;
    std::size_t threads = 16;
    std::string http = "httplib";
    bool no_prepared_statements = false;
    bool demo = false;
};

/// Failures go to standard error, a line each; every event is counted.
class Log final : public idempotency::PrometheusObserver {
public:
    using PrometheusObserver::PrometheusObserver;

    void unstorable(std::string_view action, std::string_view reason) noexcept override {
        PrometheusObserver::unstorable(action, reason);
        write(action, reason);
    }
    void failed(std::string_view action, std::string_view reason) noexcept override {
        PrometheusObserver::failed(action, reason);
        write(action, reason);
    }

private:
    void write(std::string_view action, std::string_view reason) {
        const std::scoped_lock lock(mutex_);
        std::cerr << action << ": " << reason << '\n';
    }

    std::mutex mutex_;
};

/// Authorization: Bearer PRINCIPAL, looked up in the table principals.
idempotency::Authenticate authenticate_by(idempotency::UnitOfWork& unit_of_work) {
    return [&](const http::Request& request) -> std::variant<Actor, Problem> {
        constexpr std::string_view scheme = "Bearer ";
        const std::string_view header = request.headers.get("Authorization").value_or("");
        // The scheme's name compares without case (RFC 9110 section 11.1).
        const bool bearer =
            header.size() > scheme.size() && strncasecmp(header.data(), scheme.data(), scheme.size()) == 0;
        const auto principal_id = bearer ? idempotency::Uuid::parse(header.substr(scheme.size())) : std::nullopt;
        bool known = false;
        if (principal_id) {
            unit_of_work.run([&](idempotency::Transaction& transaction) {
                known = transaction.execute("SELECT FROM principals WHERE id = $1", {*principal_id}).rows() == 1;
            });
        }
        if (!known) {
            return Problem{
                401, "unauthorized", "Unauthorized", "Send Authorization: Bearer with the id of a principal.", {}, {}};
        }
        return Actor{principal_id};
    };
}

/// Splits HOST:PORT. Ends the program with status 2 when it is something else.
std::pair<std::string, int> host_and_port(const std::string& listen) {
    const std::size_t colon = listen.rfind(':');
    try {
        std::size_t used = 0;
        const std::string port_text = colon == std::string::npos ? "" : listen.substr(colon + 1);
        const int port = std::stoi(port_text, &used);
        if (used == port_text.size() && port >= 0 && port <= 65535 && colon > 0) {
            return {listen.substr(0, colon), port};
        }
    } catch (const std::exception&) {
        // said below
    }
    std::cerr << "orders_server: --listen needs HOST:PORT, not '" << listen << "'\n";
    std::exit(2);
}

int serve(const Options& options) {
    const auto [host, port] = host_and_port(options.listen);
    // Blocked here and so in every thread: the server waits for them.
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ending, nullptr);

    prometheus::Registry registry;
    Log log(registry);
    idempotency::Pool pool(options.conninfo, options.threads);
    idempotency::StageOptions stage_options;
    stage_options.unit_of_work.lock_timeout = std::chrono::milliseconds(options.lock_timeout_ms);
    stage_options.unit_of_work.prepared_statements = !options.no_prepared_statements;
    stage_options.observer = &log;
    const idempotency::Stage stage(pool, stage_options);
    idempotency::UnitOfWork unit_of_work(pool, stage_options.unit_of_work);
    const auto metrics = [&] { return prometheus::TextSerializer().Serialize(registry.Collect()); };
    const orders::Service service{stage, authenticate_by(unit_of_work), orders::Routes(options.demo), metrics,
                                  options.threads};
    auto* const serve_it = options.http == "beast" ? orders::serve_with_beast : orders::serve_with_httplib;
    serve_it(service, host, port,
             [&host = host](int bound) { std::cout << "listening on http://" << host << ':' << bound << std::endl; });
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    Options options;
    CLI::App app("The orders server: an example of idempotent writes on PostgreSQL.", "orders_server");
    app.add_option("--conninfo", options.conninfo, "libpq connection string; '' uses libpq's environment variables")
        ->required();
    app.add_option("--listen", options.listen, "HOST:PORT; port 0 picks a free one")->required();
    app.add_option("--lock-timeout-ms", options.lock_timeout_ms, "how long a repeat waits for the first request")
        ->check(CLI::Range(0, 3'600'000))
        ->capture_default_str();
    app.add_option("--threads", options.threads, "requests, and database connections, at a time")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--http", options.http, "the HTTP library: httplib or beast")
        ->check(CLI::IsMember({"httplib", "beast"}))
        ->capture_default_str();
    app.add_flag("--no-prepared-statements", options.no_prepared_statements,
                 "for a transaction pooler that does not follow them (PgBouncer before 1.21)");
    app.add_flag("--demo", options.demo, "let the header Demo-Behaviour steer POST /api/v1/orders");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return serve(options);
} catch (const std::exception& error) {
    std::cerr << "orders_server: " << error.what() << '\n';
    return 1;
}
