// The header Demo-Behaviour.
// Called by orders.cpp.
#include "demo_behaviour.hpp"

#include <charconv>
#include <string>
#include <string_view>

#include "idempotency/problem.hpp"

namespace orders {
namespace {

using idempotency::Context;
using idempotency::Problem;
namespace http = idempotency::http;

std::optional<int> number(std::string_view text, int lowest, int highest) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && value >= lowest && value <= highest ? std::optional(value) : std::nullopt;
}

http::Response not_understood(const Context& context) {
    return Problem{400,
                   "validation_failed",
                   "Validation failed",
                   "Demo-Behaviour is not understood.",
                   {{"#header/Demo-Behaviour", "invalid_format",
                     "Use sleep=MS, status=NNN, error=40001, error=40P01, error=55P03 or error=once."}},
                   {}}
        .to_response(context.correlation_id());
}

http::Response with_status(int status, const Context& context) {
    if (status < 400) {
        return {status, {}, ""};
    }
    return Problem{status, "demo_status", "Demo", "Demo-Behaviour asked for this status.", {}, {}}.to_response(
        context.correlation_id());
}

void raise(std::string_view sqlstate, Context& context) {
    // The SQLSTATE is one of three constants, never text of the request.
    context.transaction().execute("DO $$ BEGIN RAISE EXCEPTION 'demo' USING ERRCODE = '" + std::string(sqlstate) +
                                  "'; END $$");
}

}  // namespace

std::optional<http::Response> demo_behaviour(const http::Request& request, Context& context) {
    const std::string_view behaviour = request.headers.get("Demo-Behaviour").value_or("");
    if (behaviour.empty()) {
        return std::nullopt;
    }
    const std::string_view name = behaviour.substr(0, behaviour.find('='));
    const std::string_view value = behaviour.substr(std::min(name.size() + 1, behaviour.size()));
    if (name == "sleep") {
        if (const auto milliseconds = number(value, 0, 60'000)) {
            context.transaction().execute("SELECT pg_sleep($1::integer / 1000.0)", {*milliseconds});
            return std::nullopt;
        }
    } else if (name == "status") {
        if (const auto status = number(value, 200, 599)) {
            return with_status(*status, context);
        }
    } else if (name == "error") {
        for (const std::string_view sqlstate : {"40001", "40P01", "55P03"}) {
            if (value == sqlstate) {
                raise(sqlstate, context);
            }
        }
        if (value == "once") {
            if (context.attempt() == 1) {
                raise("40001", context);
            }
            return std::nullopt;
        }
    }
    return not_understood(context);
}

}  // namespace orders
