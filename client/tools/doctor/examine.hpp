// Runs the checks on one database.
// Called by idempotency_doctor.cpp.
#pragma once

#include <string>
#include <vector>

#include "check.hpp"

namespace doctor {

/// Every check in its order.
[[nodiscard]] std::vector<Check> all_checks(const Options& options);

/// Looks, and changes nothing. A check that cannot look becomes a finding with the status unknown; without a connection that is the only one.
/// Checks that make no sense without the extension or the table are left out when these are missing, which is a finding of its own.
[[nodiscard]] std::vector<Finding> examine(const Options& options);

/// The connection string for another database of the same server.
/// @param conninfo a libpq connection string or URI
[[nodiscard]] std::string conninfo_for(const std::string& conninfo, const std::string& database);

}  // namespace doctor
