// The cold half of the boundary: taking an error from the server, and giving one back.
// Called by the templates of boundary.hpp only.
#include "pg/boundary.hpp"

#include <algorithm>
#include <cstring>

namespace pg {
namespace detail {

MemoryContext entry_memory = nullptr;

ErrorData* take_error(MemoryContext restore) noexcept {
    // Copying may itself run out of memory; that longjmp must end here, not above C++ frames.
    sigjmp_buf* const outer_handler = PG_exception_stack;
    sigjmp_buf handler;
    ErrorData* volatile data = nullptr;
    if (sigsetjmp(handler, 0) == 0) {
        PG_exception_stack = &handler;
        MemoryContextSwitchTo(entry_memory);
        data = CopyErrorData();
    } else {
        data = nullptr;
    }
    PG_exception_stack = outer_handler;
    FlushErrorState();
    MemoryContextSwitchTo(restore);
    return data;
}

void begin_subtransaction() {
    const MemoryContext memory = CurrentMemoryContext;
    call([&] {
        BeginInternalSubTransaction(nullptr);
        MemoryContextSwitchTo(memory);
    });
}

void end_subtransaction(bool roll_back, MemoryContext memory, ResourceOwner owner) {
    call([&] {
        if (roll_back) {
            RollbackAndReleaseCurrentSubTransaction();
        } else {
            ReleaseCurrentSubTransaction();
        }
        MemoryContextSwitchTo(memory);
        CurrentResourceOwner = owner;
    });
}

void Caught::remember(const char* text) noexcept {
    const std::size_t length = std::min(std::strlen(text), sizeof message - 1);
    std::memcpy(message, text, length);
    message[length] = '\0';
}

void raise(const Caught& caught) {
    if (caught.is_server_error && caught.server_error != nullptr) {
        ReThrowError(caught.server_error);
    }
    if (caught.is_server_error || caught.out_of_memory) {
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    }
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("unexpected failure in pg_idempotency"),
                    errdetail_internal("%s", caught.message)));
    pg_unreachable();
}

}  // namespace detail

void fail(int sqlstate, const std::string& message, const std::string& detail, const std::string& hint) {
    const char* const message_text = message.c_str();
    const char* const detail_text = detail.empty() ? nullptr : detail.c_str();
    const char* const hint_text = hint.empty() ? nullptr : hint.c_str();
    call([&] {
        ereport(ERROR, (errcode(sqlstate), errmsg("%s", message_text),
                        detail_text != nullptr ? errdetail("%s", detail_text) : 0,
                        hint_text != nullptr ? errhint("%s", hint_text) : 0));
    });
    throw std::bad_alloc();  // not reached: the call above always throws
}

void require_arguments(FunctionCallInfo fcinfo, int count) {
    if (PG_NARGS() != count) {
        fail(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the SQL function belongs to another version of pg_idempotency",
             "The library takes " + std::to_string(count) + " arguments, the function has " +
                 std::to_string(PG_NARGS()) + ".",
             "ALTER EXTENSION pg_idempotency UPDATE;");
    }
}

}  // namespace pg
