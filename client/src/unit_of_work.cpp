// The unit of work: attempts, the pauses between them, and the commit.
// Called by applications; its attempts by the stage too.
#include "idempotency/unit_of_work.hpp"

#include <algorithm>
#include <random>
#include <thread>

#include "attempts.hpp"
#include "transaction_control.hpp"

namespace idempotency {
namespace {

/// Doubles from attempt to attempt, up to a limit; half of it is chance, so that those who collided do not collide again.
std::chrono::microseconds pause_after(int attempt) {
    constexpr double first = 5'000;
    constexpr double longest = 200'000;
    thread_local std::minstd_rand chance{std::random_device{}()};
    const double pause = std::min(longest, first * static_cast<double>(1 << std::min(attempt - 1, 20)));
    return std::chrono::microseconds(static_cast<long>(pause * std::uniform_real_distribution<>(0.5, 1.0)(chance)));
}

}  // namespace

void run_attempts(ConnectionSource& source, const UnitOfWorkOptions& options,
                  std::chrono::steady_clock::time_point deadline, const std::function<void(Attempt)>& work,
                  const std::function<bool(const Error&)>& worth_a_new_attempt) {
    using Clock = std::chrono::steady_clock;
    for (int number = 1;; ++number) {
        const auto pause = pause_after(number);
        try {
            const Lease lease(source, std::min(deadline, Clock::now() + options.acquire_timeout));
            Transaction transaction = Transaction::Control::open(lease.connection(), options);
            work({lease.connection(), transaction, number});
            return;
        } catch (const Error& error) {
            if (number > options.tx_retry_max || Clock::now() + pause >= deadline || !worth_a_new_attempt(error)) {
                throw;
            }
        }
        std::this_thread::sleep_for(pause);
    }
}

UnitOfWork::UnitOfWork(ConnectionSource& source, UnitOfWorkOptions options) : source_(source), options_(options) {}

void UnitOfWork::run(const std::function<void(Transaction&)>& work) {
    run_attempts(
        source_, options_, std::chrono::steady_clock::time_point::max(),
        [&](Attempt attempt) {
            work(attempt.transaction);
            if (!Transaction::Control::ended(attempt.transaction)) {
                Transaction::Control::commit(attempt.transaction);
            }
        },
        [](const Error& error) { return error.retryable(); });
}

}  // namespace idempotency
