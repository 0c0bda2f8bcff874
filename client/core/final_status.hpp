// Which HTTP statuses are final, and so kept for replay (the seed's "Algorithm", step 3).
// Used by the extension (complete, save_final) and the stage.
#pragma once

#include <algorithm>
#include <array>

namespace idempotency {

/// Success: the effect and the answer commit together.
[[nodiscard]] constexpr bool is_success(int status) noexcept { return status >= 200 && status <= 299; }

/// The errors that are final: kept after the effect was rolled back. 409 request_in_progress is the stage's own and never kept.
inline constexpr std::array final_error_statuses{400, 403, 404, 409, 410, 412, 413, 415, 422};

/// Whether an error is final: one of final_error_statuses.
[[nodiscard]] constexpr bool is_final_error(int status) noexcept {
    return std::ranges::find(final_error_statuses, status) != final_error_statuses.end();
}

}  // namespace idempotency
