// Finding the operations in a description.
// Called by idempotency-openapi.
#include "operations.hpp"

#include <strings.h>

#include <algorithm>
#include <charconv>

namespace openapi {
namespace {

bool same_header(std::string_view a, std::string_view b) {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// Adds the parameters of a list; one of the same name and place replaces what was there.
void add_parameters(std::vector<Parameter>& parameters, const Node& list) {
    for (const Node& node : list.elements()) {
        Parameter parameter{node["name"].text(), node["in"].text(), node["required"].boolean(false), node.place()};
        const auto known = std::ranges::find_if(parameters, [&](const Parameter& other) {
            return other.in == parameter.in &&
                   (parameter.in == "header" ? same_header(other.name, parameter.name) : other.name == parameter.name);
        });
        if (known != parameters.end()) {
            *known = std::move(parameter);
        } else {
            parameters.push_back(std::move(parameter));
        }
    }
}

std::size_t body_limit_of(const Node& node) {
    const std::string text = node.text();
    std::size_t limit = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (node && (error != std::errc() || end != text.data() + text.size() || limit == 0)) {
        throw Unusable(node.place(), "x-body-limit must be a positive number of bytes");
    }
    return limit;
}

ApiOperation operation_of(const std::string& method, const std::string& path, const Node& item, const Node& node) {
    std::string upper = method;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    ApiOperation operation{
        upper, path, node.place(), node["operationId"].text(), node["x-authz-action"].text(), {}, node["requestBody"],
        {}};
    if (operation.action.empty()) {
        operation.action = operation.id;
    }
    add_parameters(operation.parameters, item["parameters"]);
    add_parameters(operation.parameters, node["parameters"]);
    for (const Parameter& parameter : operation.parameters) {
        if (parameter.in == "header" && same_header(parameter.name, "Idempotency-Key")) {
            operation.keyed = true;
            operation.key_required = parameter.required;
        }
    }
    for (const auto& [status, response] : node["responses"].members()) {
        operation.responses.push_back({status, response});
    }
    operation.body_limit = body_limit_of(node["x-body-limit"]);
    return operation;
}

}  // namespace

Node ApiResponse::header(std::string_view name) const {
    for (const auto& [declared, header] : node["headers"].members()) {
        if (same_header(declared, name)) {
            return header;
        }
    }
    return node["headers"]["a header that is not declared"];
}

std::vector<int> ApiOperation::etag_statuses() const {
    std::vector<int> statuses;
    for (const ApiResponse& response : responses) {
        if (!response.success() || !response.header("ETag")) {
            continue;
        }
        int status = 0;
        const auto [end, error] =
            std::from_chars(response.status.data(), response.status.data() + response.status.size(), status);
        if (error == std::errc() && end == response.status.data() + response.status.size()) {
            statuses.push_back(status);
        } else {
            statuses.insert(statuses.end(), {200, 201, 202});
        }
    }
    std::ranges::sort(statuses);
    statuses.erase(std::unique(statuses.begin(), statuses.end()), statuses.end());
    return statuses;
}

std::vector<ApiOperation> operations_of(Description& description) {
    std::vector<ApiOperation> operations;
    for (const auto& [path, item] : description.root()["paths"].members()) {
        for (const auto& [name, node] : item.members()) {
            static constexpr std::string_view methods[] = {"get",     "put",  "post",  "delete",
                                                           "options", "head", "patch", "trace"};
            if (std::ranges::find(methods, name) != std::end(methods) && path.starts_with('/')) {
                operations.push_back(operation_of(name, path, item, node));
            }
        }
    }
    return operations;
}

}  // namespace openapi
