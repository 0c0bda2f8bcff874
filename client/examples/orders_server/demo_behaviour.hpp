// The header Demo-Behaviour: makes POST /api/v1/orders slow or failing on request, to try the product from outside.
// Used by orders.cpp when the server runs with --demo.
#pragma once

#include <optional>

#include "idempotency/stage.hpp"

namespace orders {

/// Does what the request's Demo-Behaviour says: sleep=MS waits in the database, status=NNN answers that status,
/// error=40001|40P01|55P03 raises it in the database on every attempt, error=once raises 40001 on the first attempt.
/// @return the answer to give in place of the handler's, or nothing; 400 for a value that is none of these
/// @throws idempotency::Error what the database raised
std::optional<idempotency::http::Response> demo_behaviour(const idempotency::http::Request& request,
                                                          idempotency::Context& context);

}  // namespace orders
