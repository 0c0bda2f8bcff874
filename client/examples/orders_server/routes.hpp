// The routes of the orders server, and what it answers where there is none; the same on every HTTP library.
// Used by main.cpp and by the two servers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "idempotency/stage.hpp"

namespace orders {

struct Route {
    std::string method;
    std::string path;  ///< a segment {id} stands for any one segment
    idempotency::Operation operation;
    idempotency::Handler handler;

    /// Whether a decoded path without its query is this route's.
    [[nodiscard]] bool matches(std::string_view request_path) const noexcept;
};

/// Every operation. With `demo`, the header Demo-Behaviour steers POST /api/v1/orders.
[[nodiscard]] std::vector<Route> routes(bool demo);

/// What answers a request that no route took: 405 with the methods of the path in `allow`, 404, or another status that the HTTP
/// library gave.
struct Refusal {
    idempotency::Problem problem;
    std::string allow;  ///< the header Allow; empty: none
};
[[nodiscard]] Refusal refusal(const std::vector<Route>& routes, std::string_view request_path, int status);

}  // namespace orders
