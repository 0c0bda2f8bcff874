// A client that retries as an outbox does: the very same request, with back-off, until its answer is final.
// Played by main.cpp, many at once; its operations are read by checks.cpp.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <random>
#include <string>

#include "orders_client.hpp"
#include "verdict.hpp"

namespace crash {

/// Counts of everything that was sent.
struct Traffic {
    std::atomic<long> requests{0};
    std::atomic<long> unanswered{0};       ///< refused, cut or timed out
    std::atomic<long> acknowledged{0};     ///< keys with a final answer
    std::atomic<long> replays{0};          ///< compared with the first answer
    std::atomic<long> errors_run_anew{0};  ///< final errors that were told before they were stored; see Outbox::compare
    std::array<std::atomic<long>, 600> by_status{};
};

/// What a client compares of two answers.
struct Answer {
    int status;
    std::string body, content_type, etag, location;

    bool operator==(const Answer&) const = default;
};

struct Operation {
    enum class Kind { create, replace, remove, refused };

    Kind kind;
    std::string key, method, path, body, if_match, behaviour;
    int expected;  ///< status of a run that is the first
    std::optional<Answer> first{};
    std::optional<Answer> replayed{};

    [[nodiscard]] bool succeeds() const { return kind != Kind::refused; }
    [[nodiscard]] std::string text() const { return method + " " + path + " with key " + key; }
};

class Outbox : private OrdersClient {
public:
    Outbox(const std::string& url, const std::string& sender, unsigned long long seed, Traffic& traffic,
           Verdict& verdict);

    /// Carries out operations of its own choice until told to stop; the one at hand is finished.
    void work(const std::atomic<bool>& stop);

    /// Repeats every operation once more, and compares.
    void repeat_all();

    [[nodiscard]] const std::deque<Operation>& operations() const noexcept { return operations_; }

private:
    Operation& add(Operation::Kind kind, const std::string& method, const std::string& path, int expected);
    Operation& create();
    void change(const std::string& id);
    void be_refused();
    void perform(Operation& operation);
    void repeat(Operation& operation);
    void compare(Operation& operation, const Answer& again, bool is_replay);
    Result until_final(const Operation& operation);
    Result send(httplib::Client& through, const Operation& operation);
    bool one_in(int n) { return std::uniform_int_distribution(1, n)(chance_) == 1; }

    std::mt19937_64 chance_;
    Traffic& traffic_;
    Verdict& verdict_;
    httplib::Client patient_;
    httplib::Client hasty_;
    std::deque<Operation> operations_;
};

}  // namespace crash
