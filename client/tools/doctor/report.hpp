// The doctor's output and exit status.
// Called by idempotency_doctor.cpp.
#pragma once

#include <iosfwd>
#include <vector>

#include "check.hpp"

namespace doctor {

/// A line that sums up, then a line a finding, and beneath each problem what to type.
void write_text(std::ostream& out, const std::vector<Finding>& findings);

/// {"status": ..., "findings": [{"check", "status", "found", "remedy": [line, ...]}, ...]}
void write_json(std::ostream& out, const std::vector<Finding>& findings);

/// As monitoring plugins: 0 ok, 1 warning, 2 critical, 3 unknown. Critical outweighs warning, warning outweighs unknown.
[[nodiscard]] int exit_status(const std::vector<Finding>& findings);

}  // namespace doctor
