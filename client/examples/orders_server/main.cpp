// The orders server: a small service on cpp-httplib, the shim and PostgreSQL.
// Started by people, by the demo and by the HTTP tests.
#include <CLI/CLI.hpp>
#include <httplib.h>
#include <signal.h>
#include <strings.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <mutex>
#include <regex>
#include <thread>

#include "httplib.hpp"
#include "idempotency/problem.hpp"
#include "orders.hpp"

namespace {

using idempotency::Actor;
using idempotency::Problem;
namespace http = idempotency::http;

struct Options {
    std::string conninfo;
    std::string listen;
    int lock_timeout_ms = 5000;
    std::size_t threads = 16;
    bool demo = false;
};

/// Failures go to standard error, a line each.
class Log final : public idempotency::Observer {
public:
    void failed(std::string_view action, std::string_view reason) noexcept override {
        const std::scoped_lock lock(mutex_);
        std::cerr << action << ": " << reason << '\n';
    }

private:
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

/// The methods of a path, as the header Allow lists them; empty for an unknown path.
std::string methods_of(const std::string& path) {
    static const std::regex order_path("/api/v1/orders/[^/]+");
    if (path == "/api/v1/orders") {
        return "GET, HEAD, POST";
    }
    if (path == "/api/v1/tokens" || path == "/api/v1/notes") {
        return "POST";
    }
    if (path == "/health") {
        return "GET, HEAD";
    }
    return std::regex_match(path, order_path) ? "PUT, DELETE" : "";
}

/// What httplib answers by itself, as a problem.
Problem problem_of(int status) {
    switch (status) {
        case 405:
            return {405, "method_not_allowed", "Method not allowed", "This path has no such method.", {}, {}};
        case 404:
            return {404, "not_found", "Not found", "There is nothing at this path.", {}, {}};
        case 413:
            return {413,
                    "content_too_large",
                    "Content too large",
                    "The body may have " + std::to_string(orders::body_limit) + " bytes at most.",
                    {},
                    {}};
        default:
            return {status, "bad_request", "Bad request", "The request could not be read.", {}, {}};
    }
}

void add_routes(httplib::Server& server, const idempotency::HttplibAdapter& adapter, bool demo) {
    constexpr const char* order_path = "/api/v1/orders/([^/]+)";
    server.Post("/api/v1/orders", adapter.wrap(orders::create_order, [demo](const auto& request, auto& context) {
        return orders::handle_create_order(request, context, demo);
    }));
    server.Get("/api/v1/orders", adapter.wrap(orders::list_orders, orders::handle_list_orders));
    server.Put(order_path, adapter.wrap(orders::replace_order, orders::handle_replace_order));
    server.Delete(order_path, adapter.wrap(orders::delete_order, orders::handle_delete_order));
    server.Post("/api/v1/tokens", adapter.wrap(orders::create_token, orders::handle_create_token));
    server.Post("/api/v1/notes", adapter.wrap(orders::create_note, orders::handle_create_note));
    server.Get("/health", [](const httplib::Request&, httplib::Response& response) {
        response.set_content(R"({"status":"ok"})", "application/json");
    });
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
    // Blocked here and so in every thread: one of them waits for the signal and stops the server.
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ending, nullptr);

    Log log;
    idempotency::Pool pool(options.conninfo, options.threads);
    idempotency::StageOptions stage_options;
    stage_options.unit_of_work.lock_timeout = std::chrono::milliseconds(options.lock_timeout_ms);
    stage_options.observer = &log;
    const idempotency::Stage stage(pool, stage_options);
    idempotency::UnitOfWork unit_of_work(pool, stage_options.unit_of_work);
    const idempotency::HttplibAdapter adapter(stage, authenticate_by(unit_of_work));

    httplib::Server server;
    server.new_task_queue = [&] { return new httplib::ThreadPool(options.threads); };
    server.set_payload_max_length(orders::body_limit);
    server.set_keep_alive_timeout(1);
    server.set_tcp_nodelay(true);
    int listening_socket = -1;
    server.set_socket_options([&](int socket) {
        const int on = 1;
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        listening_socket = socket;
    });
    server.set_pre_routing_handler(idempotency::HttplibAdapter::expect_no_body_without_length);
    server.set_error_handler([&](const httplib::Request& request, httplib::Response& response) {
        if (response.body.empty() && response.headers.count("Correlation-Id") == 0) {
            // httplib has no 405 of its own: a path without the method is as unknown to it as any other.
            const std::string allowed = response.status == 404 ? methods_of(request.path) : "";
            adapter.refuse(request, response, problem_of(allowed.empty() ? response.status : 405));
            if (!allowed.empty()) {
                response.set_header("Allow", allowed);
            }
        }
    });
    add_routes(server, adapter, options.demo);

    const int bound = port == 0                                 ? server.bind_to_any_port(host.c_str())
                      : server.bind_to_port(host.c_str(), port) ? port
                                                                : -1;
    if (bound < 0) {
        std::cerr << "orders_server: cannot listen on " << options.listen << '\n';
        return 1;
    }
    listen(listening_socket, SOMAXCONN);  // httplib asked for a queue of five, too short for a storm of repeats
    std::cout << "listening on http://" << host << ':' << bound << std::endl;
    std::atomic<bool> ended = false;
    std::thread stopper([&] {
        int signal = 0;
        sigwait(&ending, &signal);
        // httplib forgets a stop() that comes before it runs, and tells nobody when it does.
        while (!server.is_running() && !ended) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        server.stop();
    });
    const bool served = server.listen_after_bind();
    ended = true;
    pthread_kill(stopper.native_handle(), SIGTERM);  // it may still wait when listening failed
    stopper.join();
    return served ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
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
    app.add_flag("--demo", options.demo, "let the header Demo-Behaviour steer POST /api/v1/orders");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    try {
        return serve(options);
    } catch (const std::exception& error) {
        std::cerr << "orders_server: " << error.what() << '\n';
        return 1;
    }
}
