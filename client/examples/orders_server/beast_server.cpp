// The orders server on Boost.Beast: a coroutine a connection, on as many threads as requests may run at a time.
// Called by main.cpp.
#include <csignal>

#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "idempotency/adapters/beast.hpp"
#include "orders.hpp"
#include "server.hpp"

namespace orders {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::use_awaitable;
using asio::ip::tcp;
using idempotency::BeastAdapter;

constexpr std::chrono::seconds idle_timeout{1};
constexpr std::chrono::seconds request_timeout{30};
constexpr std::chrono::seconds linger_timeout{2};

class BeastServer {
public:
    BeastServer(const Service& service, const std::string& host, int port)
        : service_(service),
          adapter_(service.stage, service.authenticate),
          acceptor_(context_, tcp::endpoint(asio::ip::make_address(host), static_cast<unsigned short>(port))),
          signals_(context_, SIGTERM, SIGINT) {}

    void serve(const std::function<void(int)>& listening) {
        signals_.async_wait([this](const boost::system::error_code&, int) {
            stopping_ = true;
            acceptor_.close();
        });
        asio::co_spawn(context_, accept_connections(), asio::detached);
        unblock_signals();
        listening(acceptor_.local_endpoint().port());
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < service_.threads; ++i) {
            threads.emplace_back([this] { context_.run(); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

private:
    /// asio takes signals through a handler; the caller blocked them.
    static void unblock_signals() {
        sigset_t ending;
        sigemptyset(&ending);
        sigaddset(&ending, SIGTERM);
        sigaddset(&ending, SIGINT);
        pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
    }

    asio::awaitable<void> accept_connections() {
        while (!stopping_) {
            try {
                tcp::socket socket = co_await acceptor_.async_accept(use_awaitable);
                socket.set_option(tcp::no_delay(true));
                asio::co_spawn(context_, serve_connection(beast::tcp_stream(std::move(socket))), asio::detached);
            } catch (const boost::system::system_error&) {
                // closed: stopping_ is set; else the peer has gone already, or descriptors ran out
            }
        }
    }

    asio::awaitable<void> serve_connection(beast::tcp_stream stream) {
        beast::flat_buffer buffer;
        try {
            while (!stopping_) {
                const BeastAdapter::Response response = co_await next_response(stream, buffer);
                stream.expires_after(request_timeout);
                co_await beast::http::async_write(stream, response, use_awaitable);
                if (response.need_eof()) {
                    break;
                }
            }
            stream.socket().shutdown(tcp::socket::shutdown_send);
            // A client that still sends its body reads the answer afterwards: closing now would reset the connection under it.
            stream.expires_after(linger_timeout);
            for (;;) {
                buffer.clear();
                co_await stream.async_read_some(buffer.prepare(64 * 1024), use_awaitable);
            }
        } catch (const boost::system::system_error&) {
            // the client has gone, or was idle for too long
        }
    }

    asio::awaitable<BeastAdapter::Response> next_response(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
        beast::http::request_parser<beast::http::string_body> parser;
        parser.body_limit(body_limit);
        stream.expires_after(idle_timeout);
        boost::system::error_code error;
        co_await beast::http::async_read_header(stream, buffer, parser, asio::redirect_error(use_awaitable, error));
        if (!error && parser.get()[beast::http::field::expect] == "100-continue") {
            beast::http::response<beast::http::empty_body> go_on(beast::http::status::continue_,
                                                                 parser.get().version());
            co_await beast::http::async_write(stream, go_on, use_awaitable);
        }
        if (!error) {
            stream.expires_after(request_timeout);
            co_await beast::http::async_read(stream, buffer, parser, asio::redirect_error(use_awaitable, error));
        }
        if (!error) {
            co_return respond(parser.release());
        }
        const auto& http_errors = beast::http::make_error_code(beast::http::error::end_of_stream).category();
        if (error == beast::http::error::end_of_stream || error.category() != http_errors) {
            throw boost::system::system_error(error);
        }
        // What is left of the request cannot be told from a next one: the connection ends with this answer.
        BeastAdapter::Request request = parser.release();
        request.keep_alive(false);
        co_return refuse(request, error == beast::http::error::body_limit ? 413 : 400);
    }

    [[nodiscard]] BeastAdapter::Response respond(const BeastAdapter::Request& request) const {
        const std::string_view target(request.target().data(), request.target().size());
        const std::string_view path = target.substr(0, target.find('?'));
        const std::string_view method(request.method_string().data(), request.method_string().size());
        if (const auto route = service_.routes.match(method, path)) {
            return adapter_.handle(route->entry.operation, route->handler, request);
        }
        if ((path == "/health" || path == "/metrics") && (method == "GET" || method == "HEAD")) {
            return path == "/health" ? plain(request, R"({"status":"ok"})", "application/json")
                                     : plain(request, service_.metrics(), "text/plain; version=0.0.4");
        }
        return refuse(request, 404);
    }

    [[nodiscard]] BeastAdapter::Response refuse(const BeastAdapter::Request& request, int status) const {
        const std::string_view target(request.target().data(), request.target().size());
        const Refusal refused = refusal(service_.routes, target.substr(0, target.find('?')), status);
        BeastAdapter::Response response = adapter_.refuse(request, refused.problem);
        if (!refused.allow.empty()) {
            response.set(beast::http::field::allow, refused.allow);
        }
        return response;
    }

    static BeastAdapter::Response plain(const BeastAdapter::Request& request, std::string body, const char* type) {
        BeastAdapter::Response response(beast::http::status::ok, request.version(), std::move(body));
        response.set(beast::http::field::content_type, type);
        response.keep_alive(request.keep_alive());
        response.prepare_payload();
        if (request.method() == beast::http::verb::head) {
            response.body().clear();
        }
        return response;
    }

    const Service& service_;
    BeastAdapter adapter_;
    asio::io_context context_;
    tcp::acceptor acceptor_;
    asio::signal_set signals_;
    std::atomic<bool> stopping_ = false;
};

}  // namespace

void serve_with_beast(const Service& service, const std::string& host, int port,
                      const std::function<void(int)>& listening) {
    BeastServer(service, host, port).serve(listening);
}

}  // namespace orders
