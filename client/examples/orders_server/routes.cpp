// The routes of the orders server.
// Called by main.cpp and by the two servers.
#include "routes.hpp"

#include "orders.hpp"

namespace orders {

using idempotency::Problem;

bool Route::matches(std::string_view request_path) const noexcept {
    const std::size_t parameter = path.find("{id}");
    if (parameter == std::string::npos) {
        return request_path == path;
    }
    return request_path.size() > parameter && request_path.starts_with(path.substr(0, parameter)) &&
           request_path.find('/', parameter) == std::string_view::npos;
}

std::vector<Route> routes(bool demo) {
    const auto create = [demo](const http::Request& request, Context& context) {
        return handle_create_order(request, context, demo);
    };
    return {
        {"GET", "/api/v1/orders", list_orders, handle_list_orders},
        {"HEAD", "/api/v1/orders", list_orders, handle_list_orders},
        {"POST", "/api/v1/orders", create_order, create},
        {"PUT", "/api/v1/orders/{id}", replace_order, handle_replace_order},
        {"DELETE", "/api/v1/orders/{id}", delete_order, handle_delete_order},
        {"POST", "/api/v1/tokens", create_token, handle_create_token},
        {"POST", "/api/v1/notes", create_note, handle_create_note},
    };
}

Refusal refusal(const std::vector<Route>& routes, std::string_view request_path, int status) {
    std::string allow;
    if (status == 404) {
        for (const Route& route : routes) {
            if (route.matches(request_path)) {
                allow += (allow.empty() ? "" : ", ") + route.method;
            }
        }
        if (request_path == "/health" || request_path == "/metrics") {
            allow = "GET, HEAD";
        }
    }
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
