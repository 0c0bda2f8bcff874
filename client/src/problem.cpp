// Problem documents (RFC 9457) as JSON.
// Called by the stage and by handlers.
#include "idempotency/problem.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace idempotency {
namespace {

/// A string of JSON. A member may carry bytes from the request: what is not UTF-8 is replaced, never an exception.
std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// An object of JSON, put together as text: a value of the JSON library that has members takes memory when it is destroyed, and ends the process when
/// there is none.
class Object {
public:
    /// Replaces a member of this name.
    void set(const std::string& name, std::string json) {
        const auto found = std::ranges::find(members_, name, &std::pair<std::string, std::string>::first);
        if (found != members_.end()) {
            found->second = std::move(json);
        } else {
            members_.emplace_back(name, std::move(json));
        }
    }

    [[nodiscard]] std::string text() const {
        std::string text;
        for (const auto& [name, json] : members_) {
            text += (text.empty() ? '{' : ',') + quoted(name) + ':' + json;
        }
        return text + '}';
    }

private:
    std::vector<std::pair<std::string, std::string>> members_;
};

std::string array_of(const std::vector<ProblemError>& errors) {
    std::string text;
    for (const ProblemError& error : errors) {
        Object object;
        object.set("pointer", quoted(error.pointer));
        object.set("code", quoted(error.code));
        object.set("detail", quoted(error.detail));
        text += (text.empty() ? '[' : ',') + object.text();
    }
    return text + ']';
}

}  // namespace

http::Response Problem::to_response(const std::string& correlation_id) const {
    Object document;
    document.set("type", quoted("about:blank"));
    document.set("title", quoted(title));
    document.set("status", std::to_string(status));
    document.set("detail", quoted(detail));
    document.set("code", quoted(code));
    for (const auto& [name, value] : members) {
        document.set(name, quoted(value));
    }
    if (!errors.empty()) {
        document.set("errors", array_of(errors));
    }
    document.set("correlation_id", quoted(correlation_id));
    http::Response response{status, {}, document.text()};
    response.headers.set("Content-Type", "application/problem+json");
    return response;
}

}  // namespace idempotency
