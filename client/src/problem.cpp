// Problem documents (RFC 9457) as JSON.
// Called by the stage and by handlers.
#include "idempotency/problem.hpp"

#include <nlohmann/json.hpp>

namespace idempotency {

http::Response Problem::to_response(const std::string& correlation_id) const {
    nlohmann::ordered_json document{
        {"type", "about:blank"}, {"title", title}, {"status", status}, {"detail", detail}, {"code", code}};
    for (const auto& [name, value] : members) {
        document[name] = value;
    }
    if (!errors.empty()) {
        auto& list = document["errors"] = nlohmann::ordered_json::array();
        for (const ProblemError& error : errors) {
            list.push_back({{"pointer", error.pointer}, {"code", error.code}, {"detail", error.detail}});
        }
    }
    document["correlation_id"] = correlation_id;
    // A member may carry bytes from the request: what is not UTF-8 is replaced, never an exception.
    http::Response response{
        status, {}, document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
    response.headers.set("Content-Type", "application/problem+json");
    return response;
}

}  // namespace idempotency
