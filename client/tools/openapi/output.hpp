// What idempotency-openapi prints: findings for people, programs and CI, and the operations table.
// Used by idempotency_openapi.cpp.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "rules.hpp"

namespace openapi {

/// A line a finding: "file:line: operation METHOD PATH: rule-name: what and how to mend".
void write_text(std::ostream& out, const std::vector<Finding>& findings);
/// An array of objects.
void write_json(std::ostream& out, const std::vector<Finding>& findings);
/// SARIF 2.1.0, which code hosts show beside the lines.
void write_sarif(std::ostream& out, const std::vector<Finding>& findings);

/// The table that Operations::load reads.
void write_operations(std::ostream& out, const std::vector<ApiOperation>& operations);
/// The same as a C++ header with a constant an operation, named by its operationId in snake_case.
/// @param source         the description, for the first line
/// @param namespace_name of the constants
/// @throws Unusable for two operations with one name
void write_cpp(std::ostream& out, const std::vector<ApiOperation>& operations, const std::string& source,
               const std::string& namespace_name);

}  // namespace openapi
