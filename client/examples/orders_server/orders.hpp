// The operations of the orders server: what each is called, and what it does.
// Registered by main.cpp; described by ../openapi.yaml.
#pragma once

#include "idempotency/stage.hpp"

namespace orders {

using idempotency::Context;
namespace http = idempotency::http;

/// Largest request body of every operation, bytes.
inline constexpr std::size_t body_limit = std::size_t{1024} * 1024;

/// POST /api/v1/orders. With `demo`, the header Demo-Behaviour steers it after it wrote its effect.
http::Response handle_create_order(const http::Request& request, Context& context, bool demo);
/// PUT /api/v1/orders/{id}, with If-Match.
http::Response handle_replace_order(const http::Request& request, Context& context);
/// DELETE /api/v1/orders/{id}.
http::Response handle_delete_order(const http::Request& request, Context& context);
/// GET /api/v1/orders: the caller's orders, the oldest first.
http::Response handle_list_orders(const http::Request& request, Context& context);
/// POST /api/v1/tokens: the secret is in this answer and nowhere else.
http::Response handle_create_token(const http::Request& request, Context& context);
/// POST /api/v1/notes: not keyed.
http::Response handle_create_note(const http::Request& request, Context& context);

}  // namespace orders
