// HTTP values: header fields without case, the path without its query.
// Called by the stage, adapters and handlers.
#include "idempotency/http.hpp"

#include <algorithm>

namespace idempotency::http {
namespace {

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) noexcept { return std::ranges::equal(a, b, {}, lower, lower); }

}  // namespace

std::optional<std::string_view> Headers::get(std::string_view name) const {
    for (const auto& [field, value] : fields_) {
        if (same_name(field, name)) {
            return value;
        }
    }
    return std::nullopt;
}

std::vector<std::string_view> Headers::all(std::string_view name) const {
    std::vector<std::string_view> values;
    for (const auto& [field, value] : fields_) {
        if (same_name(field, name)) {
            values.push_back(value);
        }
    }
    return values;
}

void Headers::add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }

void Headers::set(std::string name, std::string value) {
    remove(name);
    add(std::move(name), std::move(value));
}

void Headers::remove(std::string_view name) {
    std::erase_if(fields_, [&](const auto& field) { return same_name(field.first, name); });
}

std::string_view Request::path() const noexcept {
    const std::string_view whole = target;
    return whole.substr(0, whole.find('?'));
}

Response Response::json(int status, std::string body) {
    Response response{status, {}, std::move(body)};
    response.headers.set("Content-Type", "application/json");
    return response;
}

}  // namespace idempotency::http
