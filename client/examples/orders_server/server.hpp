// The orders server on one of two HTTP libraries.
// Called by main.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "routes.hpp"

namespace orders {

/// What a server serves.
struct Service {
    const idempotency::Stage& stage;
    idempotency::Authenticate authenticate;
    Routes routes;
    std::function<std::string()> metrics;  ///< the text for /metrics
    std::size_t threads;                   ///< requests at a time
};

/// Calls `listening` with the port once connections are accepted, then serves until SIGTERM or SIGINT, which the caller has blocked in
/// every thread; finishes the requests in flight.
/// @param port 0 picks a free one
/// @throws std::runtime_error when it cannot listen
using Serve = void(const Service& service, const std::string& host, int port,
                   const std::function<void(int)>& listening);

Serve serve_with_httplib;
Serve serve_with_beast;

}  // namespace orders
