// The routes of the orders server.
// Called by main.cpp and by the two servers.
#include "routes.hpp"

#include "operations.hpp"
#include "orders.hpp"

namespace orders {

Routes::Routes(bool demo)
    : table_({operations::list_orders, operations::create_order, operations::replace_order, operations::delete_order,
              operations::create_token, operations::create_note}),
      handlers_{handle_list_orders,
                [demo](const auto& request, auto& context) { return handle_create_order(request, context, demo); },
                handle_replace_order,
                handle_delete_order,
                handle_create_token,
                handle_create_note} {}

std::vector<Routes::Route> Routes::all() const {
    std::vector<Route> routes;
    for (std::size_t i = 0; i < handlers_.size(); ++i) {
        routes.push_back({table_.entries()[i], handlers_[i]});
    }
    return routes;
}

std::optional<Routes::Route> Routes::match(std::string_view method, std::string_view path) const {
    const idempotency::Operations::Entry* const entry = table_.match(method == "HEAD" ? "GET" : method, path);
    if (entry == nullptr) {
        return std::nullopt;
    }
    return Route{*entry, handlers_[static_cast<std::size_t>(entry - table_.entries().data())]};
}

std::string Routes::allowed(std::string_view path) const {
    if (path == "/health" || path == "/metrics") {
        return "GET, HEAD";  // the servers answer them without the stage
    }
    std::string methods;
    for (const char* const method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}) {
        if (match(method, path)) {
            methods += (methods.empty() ? "" : ", ") + std::string(method);
        }
    }
    return methods;
}

Refusal refusal(const Routes& routes, std::string_view request_path, int status) {
    const std::string allow = status == 404 ? routes.allowed(request_path) : "";
    if (!allow.empty()) {
        return {{405, "method_not_allowed", "Method not allowed", "This path has no such method.", {}, {}}, allow};
    }
    switch (status) {
        case 404:
            return {{404, "not_found", "Not found", "There is nothing at this path.", {}, {}}, ""};
        case 413:
            return {{413,
                     "content_too_large",
                     "Content too large",
                     "The body may have " + std::to_string(body_limit) + " bytes at most.",
                     {},
                     {}},
                    ""};
        default:
            return {{status, "bad_request", "Bad request", "The request could not be read.", {}, {}}, ""};
    }
}

}  // namespace orders
