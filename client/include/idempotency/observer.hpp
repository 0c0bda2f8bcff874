// What the stage tells about its work, for logs and metrics.
// Implemented by applications and by metrics adapters; called by the stage.
#pragma once

#include <chrono>
#include <string_view>

namespace idempotency {

/// One event a method; every method does nothing unless overridden. Called from the thread of the request, never with a lock
/// held; must not throw. `action` is the operation's. A key or a body is never passed.
class Observer {
public:
    virtual ~Observer() = default;

    /// How long idempotency_begin took: one round trip, and for a repeat the wait for the first request. Not told for deferred
    /// operations, where begin travels with the handler's first statement.
    virtual void waited(std::string_view action, std::chrono::nanoseconds duration) noexcept;
    /// The key is this request's: the handler runs.
    virtual void started(std::string_view action) noexcept;
    /// A stored answer was given again.
    virtual void replayed(std::string_view action, int status) noexcept;
    /// The key belongs to another request: 422.
    virtual void reused(std::string_view action) noexcept;
    /// The first request with the key still runs: 409.
    virtual void in_progress(std::string_view action) noexcept;
    /// The time in a new key is older than its life, or ahead of the clock: 422 or 400. Only with idempotency.clock_skew.
    virtual void expired(std::string_view action) noexcept;
    /// A final answer was stored.
    virtual void stored(std::string_view action, int status) noexcept;
    /// An answer that is not final went out unstored; the next request with the key runs.
    virtual void not_stored(std::string_view action, int status) noexcept;
    /// An attempt failed with this SQLSTATE, and a new one begins.
    virtual void retried(std::string_view action, std::string_view sqlstate) noexcept;
    /// The connection was lost during COMMIT; beginning again with the key told whether it had committed.
    virtual void in_doubt(std::string_view action, bool had_committed) noexcept;
    /// The handler's answer cannot be stored: not JSON, U+0000, a number that the server does not hold, over response_limit. A 2xx
    /// was rolled back and became 500; a final error went out, and the next request with the key runs.
    /// @param reason what was wrong, for the person who mends it
    virtual void unstorable(std::string_view action, std::string_view reason) noexcept;
    /// The request was answered 500 or 503 for another reason; nothing of it was kept.
    /// @param reason what was wrong, for the person who mends it
    virtual void failed(std::string_view action, std::string_view reason) noexcept;
};

}  // namespace idempotency
