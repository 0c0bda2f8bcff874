// Problem documents (RFC 9457) as JSON.
// Called by the stage and by handlers.
#include "idempotency/problem.hpp"

#include <nlohmann/json.hpp>

namespace idempotency {
namespace {

/// A string of JSON. A member may carry bytes from the request: what is not UTF-8 is replaced, never an exception.
std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string member(const std::string& name, const std::string& value) { return quoted(name) + ':' + quoted(value); }

}  // namespace

// Put together as text: a value of the JSON library with members takes memory when it is destroyed, and ends the process when there is none.
http::Response Problem::to_response(const std::string& correlation_id) const {
    std::string document = "{" + member("type", "about:blank") + "," + member("title", title) +
                           ",\"status\":" + std::to_string(status) + "," + member("detail", detail) + "," +
                           member("code", code);
    for (const auto& [name, value] : members) {
        document += "," + member(name, value);
    }
    if (!errors.empty()) {
        document += ",\"errors\":";
        char separator = '[';
        for (const ProblemError& error : errors) {
            document += separator + ("{" + member("pointer", error.pointer)) + "," + member("code", error.code) + "," +
                        member("detail", error.detail) + "}";
            separator = ',';
        }
        document += "]";
    }
    document += "," + member("correlation_id", correlation_id) + "}";
    http::Response response{status, {}, std::move(document)};
    response.headers.set("Content-Type", "application/problem+json");
    return response;
}

}  // namespace idempotency
