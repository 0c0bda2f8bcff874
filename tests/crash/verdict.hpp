// What the crash suite claims, and what it found against it.
// Filled by its clients, faults and checks; printed by main.cpp.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace crash {

enum class Claim {
    every_key_gets_its_final_answer,
    every_answer_is_that_of_a_first_run,
    a_replay_is_the_first_answer_byte_for_byte,
    an_acknowledged_key_has_its_effect,
    no_key_has_two_effects,
    no_effect_is_without_a_completed_key,
    an_acknowledged_key_is_stored_as_completed,
    no_key_is_left_in_progress,
    no_process_crashes_by_itself,
};

inline constexpr std::array claim_names{
    "every_key_gets_its_final_answer",
    "every_answer_is_that_of_a_first_run",
    "a_replay_is_the_first_answer_byte_for_byte",
    "an_acknowledged_key_has_its_effect",
    "no_key_has_two_effects",
    "no_effect_is_without_a_completed_key",
    "an_acknowledged_key_is_stored_as_completed",
    "no_key_is_left_in_progress",
    "no_process_crashes_by_itself",
};

/// Counter-examples, by claim. Safe for threads.
class Verdict {
public:
    void against(Claim claim, std::string example) {
        const std::scoped_lock lock(mutex_);
        found_[static_cast<std::size_t>(claim)].push_back(std::move(example));
    }

    [[nodiscard]] bool clean() const {
        const std::scoped_lock lock(mutex_);
        for (const auto& examples : found_) {
            if (!examples.empty()) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] const std::vector<std::string>& against(std::size_t claim) const { return found_[claim]; }

private:
    mutable std::mutex mutex_;
    std::array<std::vector<std::string>, claim_names.size()> found_;
};

}  // namespace crash
