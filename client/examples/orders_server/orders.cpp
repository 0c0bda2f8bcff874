// The operations of the orders server.
// Called by the stage, inside the transaction of the request.
#include "orders.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <variant>
#include <vector>

#include "demo_behaviour.hpp"
#include "idempotency/problem.hpp"

namespace orders {

namespace {

using idempotency::Problem;
using idempotency::ProblemError;
using idempotency::Uuid;
using nlohmann::ordered_json;

constexpr std::string_view sold_out_sku = "SOLD-OUT";
constexpr double quantity_max = 2'147'483'647;

Problem not_found() { return {404, "not_found", "Not found", "There is no such order of yours.", {}, {}}; }

Problem invalid(std::vector<ProblemError> errors) {
    return {400, "validation_failed", "Validation failed", "The request is not valid; see errors.", std::move(errors),
            {}};
}

/// The JSON object in the body, or the problem with it.
std::variant<ordered_json, Problem> object_of(const http::Request& request) {
    const std::string_view type = request.headers.get("Content-Type").value_or("");
    std::string media_type(type.substr(0, type.find_first_of("; \t")));
    std::transform(media_type.begin(), media_type.end(), media_type.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (media_type != "application/json") {
        return Problem{415, "unsupported_media_type", "Unsupported media type", "Send application/json.", {}, {}};
    }
    ordered_json document = ordered_json::parse(request.body, nullptr, false);
    if (document.is_discarded()) {
        return Problem{400, "invalid_json", "Invalid JSON", "The body is not JSON.", {}, {}};
    }
    if (!document.is_object()) {
        return invalid({{"#", "invalid_type", "Must be an object."}});
    }
    return document;
}

struct OrderInput {
    std::string sku;
    int quantity;
};

std::variant<OrderInput, Problem> order_input(const http::Request& request) {
    const auto body = object_of(request);
    if (const auto* const problem = std::get_if<Problem>(&body)) {
        return *problem;
    }
    const auto& document = std::get<ordered_json>(body);
    std::vector<ProblemError> errors;
    const auto sku = document.find("sku");
    const bool sku_ok = sku != document.end() && sku->is_string() && !sku->get_ref<const std::string&>().empty() &&
                        sku->get_ref<const std::string&>().find('\0') == std::string::npos;
    if (!sku_ok) {
        errors.push_back({"#/sku", "invalid_value", "Must be a text that is not empty."});
    }
    const auto quantity = document.find("quantity");
    const double number = quantity != document.end() && quantity->is_number() ? quantity->get<double>() : 0;
    if (number < 1 || number > quantity_max || number != std::floor(number)) {
        errors.push_back({"#/quantity", "invalid_value", "Must be an integer above 0."});
    }
    if (!errors.empty()) {
        return invalid(std::move(errors));
    }
    return OrderInput{sku->get<std::string>(), static_cast<int>(number)};
}

Problem sold_out() { return {409, "sold_out", "Sold out", "This sku is sold out.", {}, {}}; }

/// The order's id at the end of the path; nothing when it is no UUID.
std::optional<Uuid> id_of(const http::Request& request) {
    const std::string_view path = request.path();
    return Uuid::parse(path.substr(path.rfind('/') + 1));
}

http::Response order_response(int status, std::string_view id, int version, const OrderInput& order) {
    const ordered_json document{{"id", id}, {"version", version}, {"sku", order.sku}, {"quantity", order.quantity}};
    http::Response response = http::Response::json(status, document.dump());
    response.headers.set("ETag", '"' + std::to_string(version) + '"');
    return response;
}

/// The entity tags of If-Match that may match, or the one "*" (RFC 9110 section 13.1.1). Weak ones never match, so they are left out.
std::variant<std::vector<std::string>, Problem> expected_tags(const http::Request& request) {
    const auto lines = request.headers.all("If-Match");
    if (lines.empty()) {
        return Problem{
            428, "precondition_required", "Precondition required", "Send If-Match with the order's ETag.", {}, {}};
    }
    const Problem malformed = invalid({{"#header/If-Match", "invalid_format", "Must be an ETag such as \"1\"."}});
    const auto skip = [](std::string_view& text, const char* characters) {
        text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
    };
    std::vector<std::string> tags;
    bool any = false;
    for (std::string_view rest : lines) {
        if (rest == "*") {
            tags.emplace_back(rest);
            any = true;
            continue;
        }
        for (skip(rest, " \t,"); !rest.empty(); skip(rest, " \t,")) {
            const bool weak = rest.starts_with("W/");
            rest.remove_prefix(weak ? 2 : 0);
            const std::size_t end = rest.starts_with('"') ? rest.find('"', 1) : std::string_view::npos;
            if (end == std::string_view::npos) {
                return malformed;
            }
            if (!weak) {
                tags.emplace_back(rest.substr(0, end + 1));
            }
            any = true;
            rest.remove_prefix(end + 1);
            skip(rest, " \t");
            if (!rest.empty() && rest.front() != ',') {
                return malformed;
            }
        }
    }
    if (!any) {
        return malformed;
    }
    return tags;
}

bool holds(const std::vector<std::string>& tags, std::string_view version) {
    const std::string current = '"' + std::string(version) + '"';
    return std::any_of(tags.begin(), tags.end(), [&](const std::string& tag) { return tag == "*" || tag == current; });
}

std::string hex(const unsigned char* bytes, std::size_t size) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 0x0F];
    }
    return text;
}

std::string new_secret() {
    std::array<unsigned char, 32> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
        throw std::runtime_error("no random bytes");
    }
    return hex(bytes.data(), bytes.size());
}

std::string sha256_hex(std::string_view text) {
    std::array<unsigned char, 32> value{};
    if (EVP_Digest(text.data(), text.size(), value.data(), nullptr, EVP_sha256(), nullptr) != 1) {
        throw std::runtime_error("no SHA-256");
    }
    return hex(value.data(), value.size());
}

std::string principal(const Context& context) { return context.actor().principal_id.value().to_string(); }

}  // namespace

http::Response handle_create_order(const http::Request& request, Context& context, bool demo) {
    const auto input = order_input(request);
    if (const auto* const problem = std::get_if<Problem>(&input)) {
        return problem->to_response(context.correlation_id());
    }
    const auto& order = std::get<OrderInput>(input);
    if (order.sku == sold_out_sku) {
        return sold_out().to_response(context.correlation_id());
    }
    const auto row = context.transaction().execute(
        "INSERT INTO orders (principal_id, sku, quantity) VALUES ($1, $2, $3) RETURNING id",
        {principal(context), order.sku, order.quantity});
    if (demo) {
        if (auto response = demo_behaviour(request, context)) {
            return *std::move(response);
        }
    }
    return order_response(201, row.get(0, 0).value(), 1, order);
}

http::Response handle_replace_order(const http::Request& request, Context& context) {
    const auto tags = expected_tags(request);
    if (const auto* const problem = std::get_if<Problem>(&tags)) {
        return problem->to_response(context.correlation_id());
    }
    const auto input = order_input(request);
    if (const auto* const problem = std::get_if<Problem>(&input)) {
        return problem->to_response(context.correlation_id());
    }
    const auto& order = std::get<OrderInput>(input);
    const auto id = id_of(request);
    if (!id) {
        return not_found().to_response(context.correlation_id());
    }
    const auto current = context.transaction().execute(
        "SELECT version FROM orders WHERE id = $1 AND principal_id = $2 FOR UPDATE", {*id, principal(context)});
    if (current.rows() == 0) {
        return not_found().to_response(context.correlation_id());
    }
    if (!holds(std::get<std::vector<std::string>>(tags), current.get(0, 0).value())) {
        return Problem{412, "precondition_failed", "Precondition failed", "The order has another version by now.", {},
                       {}}
            .to_response(context.correlation_id());
    }
    const auto row = context.transaction().execute(
        "UPDATE orders SET sku = $2, quantity = $3, version = version + 1 WHERE id = $1 RETURNING version",
        {*id, order.sku, order.quantity});
    return order_response(200, id->to_string(), std::stoi(std::string(row.get(0, 0).value())), order);
}

http::Response handle_delete_order(const http::Request& request, Context& context) {
    const auto id = id_of(request);
    const bool deleted =
        id && context.transaction()
                      .execute("DELETE FROM orders WHERE id = $1 AND principal_id = $2", {*id, principal(context)})
                      .affected() == 1;
    return deleted ? http::Response{204, {}, ""} : not_found().to_response(context.correlation_id());
}

http::Response handle_list_orders(const http::Request&, Context& context) {
    const auto rows = context.transaction().execute(
        "SELECT id, version, sku, quantity FROM orders WHERE principal_id = $1 ORDER BY created_at, id",
        {principal(context)});
    ordered_json list = ordered_json::array();
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        list.push_back({{"id", rows.get(i, 0).value()},
                        {"version", std::stoi(std::string(rows.get(i, 1).value()))},
                        {"sku", rows.get(i, 2).value()},
                        {"quantity", std::stoi(std::string(rows.get(i, 3).value()))}});
    }
    return http::Response::json(200, ordered_json{{"orders", std::move(list)}}.dump());
}

http::Response handle_create_token(const http::Request&, Context& context) {
    const std::string secret = new_secret();
    const auto row = context.transaction().execute(
        "INSERT INTO tokens (principal_id, secret_sha256) VALUES ($1, decode($2, 'hex')) RETURNING id",
        {principal(context), sha256_hex(secret)});
    context.mark_one_time_secret();
    return http::Response::json(201, ordered_json{{"id", row.get(0, 0).value()}, {"secret", secret}}.dump());
}

http::Response handle_create_note(const http::Request& request, Context& context) {
    const auto body = object_of(request);
    if (const auto* const problem = std::get_if<Problem>(&body)) {
        return problem->to_response(context.correlation_id());
    }
    const auto& document = std::get<ordered_json>(body);
    const auto text = document.find("text");
    if (text == document.end() || !text->is_string() ||
        text->get_ref<const std::string&>().find('\0') != std::string::npos) {
        return invalid({{"#/text", "invalid_value", "Must be a text."}}).to_response(context.correlation_id());
    }
    const auto row =
        context.transaction().execute("INSERT INTO notes (principal_id, text) VALUES ($1, $2) RETURNING id",
                                      {principal(context), text->get<std::string>()});
    return http::Response::json(201, ordered_json{{"id", row.get(0, 0).value()}, {"text", *text}}.dump());
}

}  // namespace orders
