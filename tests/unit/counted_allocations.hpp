// Counts what this program allocates.
// Used by tests that hold that something allocates no more.
#pragma once

#include <cstddef>

namespace idempotency::tests {

/// Calls of operator new since the program began.
[[nodiscard]] std::size_t allocations() noexcept;

}  // namespace idempotency::tests
