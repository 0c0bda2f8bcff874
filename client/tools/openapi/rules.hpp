// What a description of keyed operations must and should hold, each rule with a name.
// Used by idempotency-openapi lint.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operations.hpp"

namespace openapi {

enum class Severity { off, warning, error };

struct Rule {
    std::string_view name;
    Severity severity;  ///< unless it is set otherwise
    std::string_view summary;
    /// Looks at one operation and reports each finding with its place.
    void (*check)(const ApiOperation& operation, const std::function<void(const Place&, const std::string&)>& report);
};

/// Every rule, the errors first.
[[nodiscard]] const std::vector<Rule>& rules();

struct Finding {
    Place place;
    std::string method;
    std::string path;
    std::string_view rule;
    Severity severity;
    std::string message;  ///< what is wrong and how to mend it
};

/// Checks every operation.
/// @param severities those that differ from the rule's own, by the rule's name
[[nodiscard]] std::vector<Finding> check(const std::vector<ApiOperation>& operations,
                                         const std::map<std::string, Severity>& severities);

}  // namespace openapi
