// Waiting for an event that nobody announces.
// Used by the crash suite's servers and faults.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace crash {

/// Asks until `ready` says so.
/// @throws std::runtime_error after a minute, with what was waited for
template <typename Ready>
void wait_until(const std::string& what, Ready ready) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!ready()) {
        if (std::chrono::steady_clock::now() > deadline) {
            throw std::runtime_error("waited in vain for " + what);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

}  // namespace crash
