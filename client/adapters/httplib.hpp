// The stage on cpp-httplib: decorates an operation's handler for httplib::Server.
// Used by applications: server.Post("/api/v1/orders", adapter.wrap(operation, handler)).
#pragma once

#include <httplib.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "idempotency/stage.hpp"

namespace idempotency {

/// Translates between httplib and the stage. Neither routing hook of httplib can carry the stage: one runs before the body is
/// read, the other sees the compressed body; so each handler is decorated.
///
/// Set httplib's payload limit to the largest body_limit of the operations: httplib answers a larger body itself, before any handler.
class HttplibAdapter {
public:
    /// @param stage must outlive the server
    HttplibAdapter(const Stage& stage, Authenticate authenticate)
        : stage_(stage), authenticate_(std::move(authenticate)) {}

    /// The handler to register with httplib, for any method.
    [[nodiscard]] httplib::Server::Handler wrap(Operation operation, Handler handler) const {
        return [this, operation = std::move(operation), handler = std::move(handler)](const httplib::Request& request,
                                                                                      httplib::Response& response) {
            send(stage_.handle(operation, authenticate_, from(request), handler), response);
        };
    }

    /// A handler on httplib's own types, as an application has them already.
    using NativeHandler = std::function<void(const httplib::Request&, httplib::Response&, Context&)>;

    /// The same for such a handler. It gets a fresh response at every attempt. It must set a whole body: one that streams (a content
    /// provider) is answered 500 at once, because what was streamed could be neither stored nor taken back.
    [[nodiscard]] httplib::Server::Handler wrap_native(Operation operation, NativeHandler handler) const {
        return [this, operation = std::move(operation), handler = std::move(handler)](const httplib::Request& request,
                                                                                      httplib::Response& response) {
            const Handler whole = [&](const http::Request&, Context& context) {
                httplib::Response fresh;
                handler(request, fresh, context);
                return whole_answer(fresh);
            };
            send(stage_.handle(operation, authenticate_, from(request), whole), response);
        };
    }

    /// For httplib's set_error_handler and set_exception_handler: a request that reached no operation.
    void refuse(const httplib::Request& request, httplib::Response& response, const Problem& problem) const {
        send(stage_.refuse(from(request), problem), response);
    }

    /// For httplib's set_pre_routing_handler. A request with neither Content-Length nor Transfer-Encoding has no body (RFC 9112
    /// section 6.3); httplib would wait for one until its read timeout, and answer 400.
    static httplib::Server::HandlerResponse expect_no_body_without_length(const httplib::Request& request,
                                                                          httplib::Response&) {
        if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) {
            // httplib made the request as a plain object and reads this field next; there is no other way to tell it.
            const_cast<httplib::Request&>(request).headers.emplace("Content-Length", "0");
        }
        return httplib::Server::HandlerResponse::Unhandled;
    }

private:
    /// httplib decodes `path`; `target` is as the client sent it, which is what the fingerprint covers.
    static http::Request from(const httplib::Request& request) {
        http::Request translated{request.method, request.target, {}, request.body};
        for (const auto& [name, value] : request.headers) {
            translated.headers.add(name, value);
        }
        return translated;
    }

    static http::Response whole_answer(const httplib::Response& response) {
        if (response.content_provider_) {
            throw std::logic_error("the handler streams its answer; an answer in the idempotency stage must be whole");
        }
        http::Response answer{
            response.status == -1 ? 200 : response.status, {}, response.body};  // -1: httplib's default
        for (const auto& [name, value] : response.headers) {
            answer.headers.add(name, value);
        }
        return answer;
    }

    static void send(const http::Response& from, httplib::Response& response) {
        response.status = from.status;
        response.headers.clear();
        for (const auto& [name, value] : from.headers) {
            response.headers.emplace(name, value);
        }
        response.body = from.body;
    }

    const Stage& stage_;
    Authenticate authenticate_;
};

}  // namespace idempotency
