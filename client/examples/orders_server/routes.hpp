// The routes of the orders server, and what it answers where there is none; the same on every HTTP library.
// Used by main.cpp and by the two servers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "idempotency/operations.hpp"

namespace orders {

/// The operations of the description, and the code that carries each out.
class Routes {
public:
    /// @param demo the header Demo-Behaviour steers POST /api/v1/orders
    explicit Routes(bool demo);

    /// Every operation with its handler.
    struct Route {
        const idempotency::Operations::Entry& entry;
        const idempotency::Handler& handler;
    };
    [[nodiscard]] std::vector<Route> all() const;
    /// The one for a request; HEAD is answered as GET.
    [[nodiscard]] std::optional<Route> match(std::string_view method, std::string_view path) const;
    /// The methods of a path as the header Allow lists them; empty for an unknown path.
    [[nodiscard]] std::string allowed(std::string_view path) const;

private:
    idempotency::Operations table_;
    std::vector<idempotency::Handler> handlers_;  ///< in the order of the table
};

/// What answers a request that no route took: 405 with the methods of the path in `allow`, 404, or another status that the HTTP
/// library gave.
struct Refusal {
    idempotency::Problem problem;
    std::string allow;  ///< the header Allow; empty: none
};
[[nodiscard]] Refusal refusal(const Routes& routes, std::string_view request_path, int status);

}  // namespace orders
