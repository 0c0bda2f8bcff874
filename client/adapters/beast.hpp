// The stage on Boost.Beast: turns a request that was read into the response to write.
// Used by applications between http::read and http::write.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <utility>

#include "idempotency/stage.hpp"

namespace idempotency {

/// Translates between Beast and the stage. Beast has no routing, so the application finds the operation and its handler.
///
/// Give the parser the largest body_limit of the operations (http::request_parser::body_limit): Beast then refuses a larger body
/// while it reads it.
class BeastAdapter {
public:
    /// A request as Beast reads it, its body a string.
    using Request = boost::beast::http::request<boost::beast::http::string_body>;
    /// A response as Beast writes it.
    using Response = boost::beast::http::response<boost::beast::http::string_body>;

    /// @param stage must outlive the adapter
    BeastAdapter(const Stage& stage, Authenticate authenticate)
        : stage_(stage), authenticate_(std::move(authenticate)) {}

    /// Answers one request. Blocks while the database works.
    /// @return the response, prepared for writing, with the request's HTTP version and keep-alive
    [[nodiscard]] Response handle(const Operation& operation, const Handler& handler, const Request& request) const {
        return to(request, stage_.handle(operation, authenticate_, from(request), handler));
    }

    /// Answers a request that belongs to no operation (404, 405, 413, ...).
    [[nodiscard]] Response refuse(const Request& request, const Problem& problem) const {
        return to(request, stage_.refuse(from(request), problem));
    }

private:
    /// The target stays as the client sent it, which is what the fingerprint covers.
    static http::Request from(const Request& request) {
        http::Request translated{
            std::string(request.method_string()), std::string(request.target()), {}, request.body()};
        for (const auto& field : request) {
            translated.headers.add(std::string(field.name_string()), std::string(field.value()));
        }
        return translated;
    }

    static Response to(const Request& request, const http::Response& from) {
        Response response(static_cast<boost::beast::http::status>(from.status), request.version());
        for (const auto& [name, value] : from.headers) {
            response.insert(name, value);
        }
        response.keep_alive(request.keep_alive());
        response.body() = from.body;
        response.prepare_payload();
        if (request.method() == boost::beast::http::verb::head) {
            response.body().clear();  // Content-Length tells what GET would give (RFC 9110 section 9.3.2)
        }
        return response;
    }

    const Stage& stage_;
    Authenticate authenticate_;
};

}  // namespace idempotency
