// The border between PostgreSQL's errors, which longjmp, and C++, which unwinds. Nothing else in the extension raises or catches.
// Entry points are one line of pg::entry; every server function that may raise runs inside pg::call.
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <type_traits>

#include "pg/server.hpp"

namespace pg {

/// A server error as an exception: SQLSTATE, message, detail, hint and context whole. The data lives as long as the call of the entry
/// point that is running.
class ServerError {
public:
    explicit ServerError(ErrorData* data) noexcept : data_(data) {}

    [[nodiscard]] ErrorData* data() const noexcept { return data_; }
    [[nodiscard]] int sqlstate() const noexcept { return data_ != nullptr ? data_->sqlerrcode : ERRCODE_OUT_OF_MEMORY; }

private:
    ErrorData* data_;  ///< null when there was no memory to copy the error
};

namespace detail {

/// The memory of the running entry point: what survives SPI_finish and a rolled back subtransaction.
extern MemoryContext entry_memory;

/// Makes the current memory context the entry memory, for the length of an entry point.
class EntryMemoryScope {
public:
    EntryMemoryScope() noexcept : outer_(entry_memory) { entry_memory = CurrentMemoryContext; }
    ~EntryMemoryScope() { entry_memory = outer_; }
    EntryMemoryScope(const EntryMemoryScope&) = delete;
    EntryMemoryScope& operator=(const EntryMemoryScope&) = delete;

private:
    MemoryContext outer_;
};

/// After a longjmp: takes the error out of the server's error stack. Null when there is no memory for it.
ErrorData* take_error(MemoryContext restore) noexcept;

/// Puts the server's error handler and context stack back when pg::call ends, by whichever way.
class HandlerScope {
public:
    HandlerScope() noexcept : handler_(PG_exception_stack), context_(error_context_stack) {}
    ~HandlerScope() {
        PG_exception_stack = handler_;
        error_context_stack = context_;
    }
    HandlerScope(const HandlerScope&) = delete;
    HandlerScope& operator=(const HandlerScope&) = delete;

private:
    sigjmp_buf* handler_;
    ErrorContextCallback* context_;
};

/// What a catch block found, in plain storage, so that the error is raised after the handler has ended: raising inside it
/// would leave the exception object behind.
struct Caught {
    bool is_server_error;
    ErrorData* server_error;
    bool out_of_memory;
    char message[256];

    void remember(const char* text) noexcept;
};

[[noreturn]] void raise(const Caught& caught);

}  // namespace detail

/// Memory that lives until the running entry point returns; results are put there.
inline MemoryContext entry_memory() noexcept { return detail::entry_memory; }

/// Runs server code that may raise an error and turns the error into a ServerError.
/// @param function must own only trivial locals, and capture by reference: a longjmp skips its destructors
/// @return what `function` returns, a trivially copyable value
/// @throws ServerError
template <typename Function>
[[gnu::noinline]] auto call(Function&& function) -> std::invoke_result_t<Function> {
    using Value = std::invoke_result_t<Function>;
    static_assert(std::is_void_v<Value> || std::is_trivially_copyable_v<Value>, "a longjmp skips destructors");
    const MemoryContext memory = CurrentMemoryContext;
    const detail::HandlerScope scope;
    sigjmp_buf handler;
    if (sigsetjmp(handler, 0) == 0) {
        PG_exception_stack = &handler;
        return function();
    }
    throw ServerError(detail::take_error(memory));
}

namespace detail {

/// Begins an internal subtransaction, and ends it: released, or rolled back whatever of it is left. The caller's memory context and resource owner stay.
void begin_subtransaction();
void end_subtransaction(bool roll_back, MemoryContext memory, ResourceOwner owner);

}  // namespace detail

/// Runs server code inside an internal subtransaction, so that the transaction goes on after an error.
/// @return nothing when it succeeded, else the error; the subtransaction is then rolled back
template <typename Function>
std::optional<ServerError> attempt(Function&& function) {
    const MemoryContext memory = CurrentMemoryContext;
    const ResourceOwner owner = CurrentResourceOwner;
    detail::begin_subtransaction();
    // Whatever is thrown: the server takes a subtransaction that an error leaves open for a savepoint of the user's, and the session stays in it.
    try {
        call(function);
        detail::end_subtransaction(false, memory, owner);
        return std::nullopt;
    } catch (const ServerError& error) {
        detail::end_subtransaction(true, memory, owner);
        return error;
    } catch (...) {
        detail::end_subtransaction(true, memory, owner);
        throw;
    }
}

/// An error of ours: message lower case without full stop, detail in sentences, hint says what to type; either may be empty.
/// @throws ServerError always
[[noreturn]] void fail(int sqlstate, const std::string& message, const std::string& detail = {},
                       const std::string& hint = {});

/// Lets a pending query cancel or shutdown take effect.
/// @throws ServerError
inline void check_for_interrupts() {
    if (INTERRUPTS_PENDING_CONDITION()) {
        call([] { CHECK_FOR_INTERRUPTS(); });
    }
}

/// Runs `body`, which may throw, and raises what it threw as a server error after C++ has unwound. For callbacks of the server.
template <typename Body>
auto guarded(Body body) {
    detail::Caught caught{};
    try {
        const detail::EntryMemoryScope scope;
        return body();
    } catch (const ServerError& error) {
        caught.is_server_error = true;
        caught.server_error = error.data();
    } catch (const std::bad_alloc&) {
        caught.out_of_memory = true;
    } catch (const std::exception& error) {
        caught.remember(error.what());
    } catch (...) {
        caught.remember("unknown exception");
    }
    detail::raise(caught);
}

/// Refuses a call by SQL of another version, whose arguments would be read as what they are not.
/// @throws ServerError
void require_arguments(FunctionCallInfo fcinfo, int count);

/// The whole of an entry point: `body` with the arguments of the call.
/// @param arguments how many the SQL function has
template <typename Body>
Datum entry(FunctionCallInfo fcinfo, int arguments, Body body) {
    return guarded([&] {
        require_arguments(fcinfo, arguments);
        return body(fcinfo);
    });
}

}  // namespace pg
