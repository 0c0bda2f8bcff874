// The output formats of idempotency-openapi.
// Called by idempotency_openapi.cpp.
#include "output.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

namespace openapi {
namespace {

using nlohmann::ordered_json;

const char* name_of(Severity severity) { return severity == Severity::error ? "error" : "warning"; }

std::string line_of(const Finding& finding) {
    return "operation " + finding.method + " " + finding.path + ": " + std::string(finding.rule) + ": " +
           finding.message;
}

/// listOrders to list_orders; what no C++ name may hold becomes an underscore.
std::string snake_case(const std::string& name) {
    std::string result;
    for (const char c : name) {
        const auto letter = static_cast<unsigned char>(c);
        if (std::isupper(letter) != 0 && !result.empty() && result.back() != '_') {
            result += '_';
        }
        result += std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '_';
    }
    return result.empty() || std::isdigit(static_cast<unsigned char>(result.front())) != 0 ? "operation_" + result
                                                                                           : result;
}

std::string cpp_string(const std::string& text) { return ordered_json(text).dump(); }

}  // namespace

void write_text(std::ostream& out, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
        out << finding.place.to_string() << ": " << line_of(finding) << '\n';
    }
}

void write_json(std::ostream& out, const std::vector<Finding>& findings) {
    ordered_json list = ordered_json::array();
    for (const Finding& finding : findings) {
        list.push_back({{"file", finding.place.file},
                        {"line", finding.place.line},
                        {"method", finding.method},
                        {"path", finding.path},
                        {"rule", finding.rule},
                        {"severity", name_of(finding.severity)},
                        {"message", finding.message}});
    }
    out << list.dump(2) << '\n';
}

void write_sarif(std::ostream& out, const std::vector<Finding>& findings) {
    ordered_json descriptors = ordered_json::array();
    for (const Rule& rule : rules()) {
        descriptors.push_back({{"id", rule.name}, {"shortDescription", {{"text", rule.summary}}}});
    }
    ordered_json results = ordered_json::array();
    for (const Finding& finding : findings) {
        const ordered_json region{{"startLine", std::max(finding.place.line, 1)}};
        const ordered_json location{{"artifactLocation", {{"uri", finding.place.file}}}, {"region", region}};
        results.push_back({{"ruleId", finding.rule},
                           {"level", name_of(finding.severity)},
                           {"message", {{"text", line_of(finding)}}},
                           {"locations", ordered_json::array({{{"physicalLocation", location}}})}});
    }
    const ordered_json driver{{"name", "idempotency-openapi"}, {"rules", descriptors}};
    const ordered_json run{{"tool", {{"driver", driver}}}, {"results", results}};
    out << ordered_json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                        {"version", "2.1.0"},
                        {"runs", ordered_json::array({run})}}
               .dump(2)
        << '\n';
}

void write_operations(std::ostream& out, const std::vector<ApiOperation>& operations) {
    ordered_json list = ordered_json::array();
    for (const ApiOperation& operation : operations) {
        ordered_json entry{{"action", operation.action},
                           {"method", operation.method},
                           {"path", operation.path},
                           {"keyed", operation.keyed},
                           {"key_required", operation.key_required},
                           {"etag_statuses", operation.etag_statuses()}};
        if (operation.body_limit > 0) {
            entry["body_limit"] = operation.body_limit;
        }
        list.push_back(std::move(entry));
    }
    out << ordered_json{{"operations", std::move(list)}}.dump(2) << '\n';
}

void write_cpp(std::ostream& out, const std::vector<ApiOperation>& operations, const std::string& source,
               const std::string& namespace_name) {
    out << "// The operations of " << source << ".\n"
        << "// Written by idempotency-openapi operations --cpp; change the description and write it again.\n"
        << "// clang-format off\n#pragma once\n\n#include \"idempotency/operations.hpp\"\n\nnamespace "
        << namespace_name << " {\n\n";
    std::map<std::string, Place> names;
    for (const ApiOperation& operation : operations) {
        const std::string name = snake_case(operation.id.empty() ? operation.method + operation.path : operation.id);
        const auto [known, is_new] = names.emplace(name, operation.place);
        if (!is_new) {
            throw Unusable(operation.place, "has the name " + name + " of the operation at " +
                                                known->second.to_string() + "; change its operationId");
        }
        out << "inline const idempotency::Operations::Entry " << name << "{\n    " << cpp_string(operation.method)
            << ",\n    " << cpp_string(operation.path) << ",\n    {.action = " << cpp_string(operation.action)
            << ", .keyed = " << (operation.keyed ? "true" : "false") << ", .etag_statuses = {";
        const char* separator = "";
        for (const int status : operation.etag_statuses()) {
            out << separator << status;
            separator = ", ";
        }
        out << '}';
        if (operation.body_limit > 0) {
            out << ", .body_limit = " << operation.body_limit;
        }
        out << ", .key_required = " << (operation.key_required ? "true" : "false") << "}};\n\n";
    }
    out << "}  // namespace " << namespace_name << '\n';
}

}  // namespace openapi
