// The orders server on cpp-httplib.
// Called by main.cpp.
#include <httplib.h>
#include <csignal>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "idempotency/adapters/httplib.hpp"
#include "orders.hpp"
#include "server.hpp"

namespace orders {
namespace {

void add_routes(httplib::Server& server, const idempotency::HttplibAdapter& adapter, const Service& service) {
    for (const Routes::Route& route : service.routes.all()) {
        const std::string& method = route.entry.method;
        std::string pattern = route.entry.path;
        if (const std::size_t parameter = pattern.find("{id}"); parameter != std::string::npos) {
            pattern.replace(parameter, 4, "([^/]+)");
        }
        auto handler = adapter.wrap(route.entry.operation, route.handler);
        if (method == "GET") {
            server.Get(pattern, std::move(handler));  // and HEAD
        } else if (method == "POST") {
            server.Post(pattern, std::move(handler));
        } else if (method == "PUT") {
            server.Put(pattern, std::move(handler));
        } else if (method == "DELETE") {
            server.Delete(pattern, std::move(handler));
        }
    }
    server.Get("/health", [](const httplib::Request&, httplib::Response& response) {
        response.set_content(R"({"status":"ok"})", "application/json");
    });
    server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
        response.set_content(service.metrics(), "text/plain; version=0.0.4");
    });
}

}  // namespace

void serve_with_httplib(const Service& service, const std::string& host, int port,
                        const std::function<void(int)>& listening) {
    const idempotency::HttplibAdapter adapter(service.stage, service.authenticate);
    httplib::Server server;
    server.new_task_queue = [&] { return new httplib::ThreadPool(service.threads); };
    server.set_payload_max_length(body_limit);
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
        if (response.body.empty() && !response.headers.contains("Correlation-Id")) {
            // httplib has no 405 of its own: a path without the method is as unknown to it as any other.
            const Refusal refused = refusal(service.routes, request.path, response.status);
            adapter.refuse(request, response, refused.problem);
            if (!refused.allow.empty()) {
                response.set_header("Allow", refused.allow);
            }
        }
    });
    add_routes(server, adapter, service);

    const int bound = port == 0 ? server.bind_to_any_port(host) : server.bind_to_port(host, port) ? port : -1;
    if (bound < 0) {
        throw std::runtime_error("cannot listen on " + host + ":" + std::to_string(port));
    }
    listen(listening_socket, SOMAXCONN);  // httplib asked for a queue of five, too short for a storm of repeats
    listening(bound);
    std::atomic<bool> ended = false;
    std::thread stopper([&] {
        sigset_t ending;
        sigemptyset(&ending);
        sigaddset(&ending, SIGTERM);
        sigaddset(&ending, SIGINT);
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
    // It may still wait when listening failed.
    // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread,cert-pos44-c): it takes the signal with sigwait
    pthread_kill(stopper.native_handle(), SIGTERM);
    stopper.join();
    if (!served) {
        throw std::runtime_error("cannot serve on " + host + ":" + std::to_string(bound));
    }
}

}  // namespace orders
