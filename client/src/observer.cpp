// The events that nobody asked for.
// Called by the stage.
#include "idempotency/observer.hpp"

namespace idempotency {

void Observer::waited(std::string_view, std::chrono::nanoseconds) noexcept {}
void Observer::started(std::string_view) noexcept {}
void Observer::replayed(std::string_view, int) noexcept {}
void Observer::reused(std::string_view) noexcept {}
void Observer::in_progress(std::string_view) noexcept {}
void Observer::expired(std::string_view) noexcept {}
void Observer::stored(std::string_view, int) noexcept {}
void Observer::not_stored(std::string_view, int) noexcept {}
void Observer::retried(std::string_view, std::string_view) noexcept {}
void Observer::in_doubt(std::string_view, bool) noexcept {}
void Observer::unstorable(std::string_view, std::string_view) noexcept {}
void Observer::failed(std::string_view, std::string_view) noexcept {}

}  // namespace idempotency
