// What the stage tells about its work, for logs and metrics.
// Implemented by applications and by the metrics adapter; called by the stage.
#pragma once

#include <string_view>

namespace idempotency {

/// One event a method; every method does nothing unless overridden. Called from the thread of the request, never with a
/// lock held; must not throw. A key or a body is never passed.
class Observer {
public:
    virtual ~Observer() = default;

    /// A handler's failure or an answer that cannot be stored: the request was answered 500 and nothing was kept.
    /// @param action the operation's
    /// @param reason what was wrong, for the person who mends the handler
    virtual void failed(std::string_view action, std::string_view reason) noexcept;
};

}  // namespace idempotency
