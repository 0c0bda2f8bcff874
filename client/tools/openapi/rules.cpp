// The rules, from the seed's generator checks and from what clients of a keyed API need to read.
// Called by idempotency-openapi lint.
#include "rules.hpp"

#include <algorithm>
#include <set>

namespace openapi {
namespace {

using Report = std::function<void(const Place&, const std::string&)>;

/// The media type without its parameters, in lower case.
std::string media_type(const std::string& declared) {
    std::string type = declared.substr(0, declared.find(';'));
    while (!type.empty() && type.back() == ' ') {
        type.pop_back();
    }
    std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
    return type;
}

bool is_streaming(const std::string& type) {
    static const std::set<std::string> streaming{"text/event-stream",  "application/x-ndjson",
                                                 "application/ndjson", "application/json-seq",
                                                 "application/jsonl",  "multipart/x-mixed-replace"};
    return streaming.contains(type);
}

/// Whether `type` of a schema is integer, alone.
bool is_integer(const Node& schema) {
    const Node type = schema["type"];
    const std::vector<Node> types = type.elements();
    return type.text() == "integer" || (types.size() == 1 && types[0].text() == "integer");
}

/// What a schema says of the member "version", through allOf, anyOf and oneOf.
struct Version {
    bool required = false;
    bool integer = false;
};

/// @param known what was found already; a schema within itself adds nothing
// NOLINTNEXTLINE(misc-no-recursion): no deeper than the schemas that are there
Version version_in(const Node& schema, std::map<std::string, Version>& known) {
    if (!schema.is_map()) {
        return {};
    }
    if (const auto [seen, is_new] = known.emplace(schema.identity(), Version{}); !is_new) {
        return seen->second;
    }
    Version found;
    for (const Node& name : schema["required"].elements()) {
        found.required = found.required || name.text() == "version";
    }
    const Node version = schema["properties"]["version"];
    found.integer = is_integer(version) || std::ranges::any_of(version["allOf"].elements(), is_integer);
    for (const Node& part : schema["allOf"].elements()) {
        const Version of_part = version_in(part, known);
        found.required = found.required || of_part.required;
        found.integer = found.integer || of_part.integer;
    }
    for (const char* const alternatives : {"oneOf", "anyOf"}) {
        const std::vector<Node> parts = schema[alternatives].elements();
        Version of_all{!parts.empty(), !parts.empty()};
        for (const Node& part : parts) {
            const Version of_part = version_in(part, known);
            of_all.required = of_all.required && of_part.required;
            of_all.integer = of_all.integer && of_part.integer;
        }
        found.required = found.required || of_all.required;
        found.integer = found.integer || of_all.integer;
    }
    known[schema.identity()] = found;
    return found;
}

void no_query(const ApiOperation& operation, const Report& report) {
    for (const Parameter& parameter : operation.parameters) {
        if (operation.keyed && parameter.in == "query") {
            report(parameter.place, "has the query parameter \"" + parameter.name +
                                        "\", which the fingerprint does not cover; move it into the path or the body");
        }
    }
}

void json_body(const ApiOperation& operation, const Report& report) {
    for (const auto& [type, content] : operation.body["content"].members()) {
        if (operation.keyed && media_type(type) != "application/json") {
            report(content.place(),
                   "takes a request body of " + type + "; keyed operations take application/json only");
        }
    }
}

void json_response(const ApiOperation& operation, const Report& report) {
    for (const ApiResponse& response : operation.responses) {
        for (const auto& [type, content] : response.node["content"].members()) {
            if (operation.keyed && response.success() && media_type(type) != "application/json") {
                report(content.place(), "answers " + response.status + " with " + type +
                                            ", which cannot be stored; answer application/json or nothing");
            }
        }
    }
}

void etag_version(const ApiOperation& operation, const Report& report) {
    for (const ApiResponse& response : operation.responses) {
        if (!operation.keyed || !response.success() || !response.header("ETag")) {
            continue;
        }
        std::map<std::string, Version> known;
        const Node content = response.node["content"]["application/json"];
        const Version version = version_in(content["schema"], known);
        if (!version.required || !version.integer) {
            report(response.header("ETag").place(), "declares ETag on " + response.status +
                                                        " but its schema has no required integer \"version\","
                                                        " from which a replay takes the ETag; add it");
        }
    }
}

void conflict_declared(const ApiOperation& operation, const Report& report) {
    const auto declares = [&](const char* status) {
        return std::ranges::any_of(operation.responses, [&](const ApiResponse& response) {
            return response.status == status || response.status == "4XX";
        });
    };
    for (const char* const status : {"409", "422"}) {
        if (operation.keyed && !declares(status)) {
            const std::string why = std::string(status) == "409" ? "while the first request runs" : "for a reused key";
            report(operation.place, "does not declare " + std::string(status) + ", the answer " + why + "; declare it");
        }
    }
}

void replay_header(const ApiOperation& operation, const Report& report) {
    for (const ApiResponse& response : operation.responses) {
        if (operation.keyed && response.success() && !response.header("Idempotent-Replay")) {
            report(response.node.place(), "does not declare the header Idempotent-Replay on " + response.status +
                                              ", by which a client tells a replay; declare it");
        }
    }
}

void unsafe_without_key(const ApiOperation& operation, const Report& report) {
    if (!operation.keyed && (operation.method == "POST" || operation.method == "PATCH")) {
        report(operation.place, "cannot be repeated safely; declare the header parameter Idempotency-Key");
    }
}

void safe_with_key(const ApiOperation& operation, const Report& report) {
    if (operation.keyed && (operation.method == "GET" || operation.method == "HEAD")) {
        report(operation.place, "has no effect to protect; drop the parameter Idempotency-Key");
    }
}

void no_streaming(const ApiOperation& operation, const Report& report) {
    for (const ApiResponse& response : operation.responses) {
        for (const auto& [type, content] : response.node["content"].members()) {
            if (operation.keyed && is_streaming(media_type(type))) {
                report(content.place(),
                       "streams " + type + " on " + response.status + "; an answer that is stored must be whole");
            }
        }
    }
}

void action_named(const ApiOperation& operation, const Report& report) {
    if (operation.keyed && operation.action.empty()) {
        report(operation.place, "has neither x-authz-action nor operationId, which name it in the table; add one");
    }
}

}  // namespace

const std::vector<Rule>& rules() {
    static const std::vector<Rule> all{
        {"keyed-no-query", Severity::error, "A keyed operation has no query parameters.", no_query},
        {"keyed-json-body", Severity::error, "A keyed operation takes no body, or application/json.", json_body},
        {"keyed-json-response", Severity::error, "A keyed operation answers 2xx with application/json, or nothing.",
         json_response},
        {"keyed-etag-version", Severity::error, "A 2xx with ETag has a schema with a required integer version.",
         etag_version},
        {"keyed-action", Severity::error, "A keyed operation has a name.", action_named},
        {"keyed-conflict", Severity::warning, "A keyed operation declares 409 and 422.", conflict_declared},
        {"keyed-replay-header", Severity::warning, "A 2xx of a keyed operation declares Idempotent-Replay.",
         replay_header},
        {"unsafe-without-key", Severity::warning, "POST and PATCH are keyed.", unsafe_without_key},
        {"safe-with-key", Severity::warning, "GET and HEAD are not keyed.", safe_with_key},
        {"keyed-streaming", Severity::warning, "A keyed operation does not stream.", no_streaming},
    };
    return all;
}

std::vector<Finding> check(const std::vector<ApiOperation>& operations,
                           const std::map<std::string, Severity>& severities) {
    std::vector<Finding> findings;
    for (const ApiOperation& operation : operations) {
        for (const Rule& rule : rules()) {
            const auto set = severities.find(std::string(rule.name));
            const Severity severity = set != severities.end() ? set->second : rule.severity;
            if (severity != Severity::off) {
                rule.check(operation, [&](const Place& place, const std::string& message) {
                    findings.push_back({place, operation.method, operation.path, rule.name, severity, message});
                });
            }
        }
    }
    return findings;
}

}  // namespace openapi
