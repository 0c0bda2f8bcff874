// The functions that fail. What the program defines itself the dynamic linker takes for the libraries as well, so send, recv and malloc stand in front
// of the C library's for libpq and OpenSSL; functions of libpq are wrapped by the linker (-Wl,--wrap). Called by client_test.cpp and all of what it tests.
#include "client_faults.hpp"

#include <dlfcn.h>
#include <libpq-fe.h>
#include <link.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace faults {
namespace {

Kind kind = Kind::none;
int fail_at = 0;
int calls = 0;
bool failed = false;
int gone_socket = -1;  ///< the connection that a fault has ended
int objects = 0;
int results = 0;

bool due(Kind of) noexcept {
    if (of != kind || ++calls != fail_at) {
        return false;
    }
    failed = true;
    return true;
}

/// Where the code of a shared library lies.
struct Code {
    const char* library;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;

    [[nodiscard]] bool holds(const void* address) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return begin <= at && at < end;
    }
};
Code libpq{"/libpq.so"};
Code libcrypto{"/libcrypto.so"};

int find_code(dl_phdr_info* info, std::size_t, void* wanted) {
    auto& code = *static_cast<Code*>(wanted);
    for (int i = 0; std::strstr(info->dlpi_name, code.library) != nullptr && i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
            code.begin = info->dlpi_addr + segment.p_vaddr;
            code.end = code.begin + segment.p_memsz;
        }
    }
    return 0;
}

/// The empty result: libpq (15) waits for ever when there is no memory for the one of a synchronisation point. What libpq makes of it elsewhere is
/// the kind libpq_result.
bool makes_an_empty_result(const void* caller) noexcept {
    Dl_info function{};
    return dladdr(caller, &function) != 0 && function.dli_sname != nullptr &&
           std::string_view(function.dli_sname) == "PQmakeEmptyPGresult";
}

bool no_memory_for(const void* caller) noexcept {
    switch (kind) {
        case Kind::libpq_malloc:
            return libpq.holds(caller) && !makes_an_empty_result(caller) && due(Kind::libpq_malloc);
        case Kind::libcrypto_malloc:
            return libcrypto.holds(caller) && due(Kind::libcrypto_malloc);
        default:
            return false;
    }
}

/// Ends the connection for both sides.
ssize_t lose(int socket, int error) noexcept {
    gone_socket = socket;
    shutdown(socket, SHUT_RDWR);
    errno = error;
    return error == 0 ? 0 : -1;
}

ssize_t sent(int socket, const void* data, std::size_t size, int flags) noexcept {
    return syscall(SYS_sendto, socket, data, size, flags, nullptr, 0);
}

PGresult* counted(PGresult* result) noexcept {
    results += result != nullptr ? 1 : 0;
    return result;
}

}  // namespace

void arm(Kind wanted, int n) noexcept {
    if (libpq.end == 0) {
        dl_iterate_phdr(find_code, &libpq);
        dl_iterate_phdr(find_code, &libcrypto);
    }
    fail_at = n;
    calls = 0;
    failed = false;
    kind = wanted;
}

bool disarm() noexcept {
    kind = Kind::none;
    return failed;
}

int living_objects() noexcept { return objects; }
int living_results() noexcept { return results; }

}  // namespace faults

using namespace faults;

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);

void* malloc(std::size_t size) noexcept {
    return no_memory_for(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
    return no_memory_for(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
    return no_memory_for(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}

int connect(int socket, const sockaddr* address, socklen_t size) {
    gone_socket = socket == gone_socket ? -1 : gone_socket;  // a new one under the old number
    if (due(Kind::connect_refused)) {
        errno = ECONNREFUSED;
        return -1;
    }
    return static_cast<int>(syscall(SYS_connect, socket, address, size));
}

int poll(pollfd* sockets, nfds_t count, int timeout) {
    if (due(Kind::poll_interrupted)) {
        errno = EINTR;
        return -1;
    }
    return static_cast<int>(syscall(SYS_poll, sockets, count, timeout));
}

ssize_t send(int socket, const void* data, std::size_t size, int flags) {
    if (socket == gone_socket || due(Kind::send_refused)) {
        return lose(socket, EPIPE);
    }
    if (due(Kind::send_lost)) {
        sent(socket, data, size, flags);
        return lose(socket, ECONNRESET);
    }
    return sent(socket, data, due(Kind::send_short) ? (size + 1) / 2 : size, flags);
}

ssize_t recv(int socket, void* data, std::size_t size, int flags) {
    if (socket == gone_socket || due(Kind::recv_reset)) {
        return lose(socket, ECONNRESET);
    }
    if (due(Kind::recv_end)) {
        return lose(socket, 0);
    }
    return syscall(SYS_recvfrom, socket, data, due(Kind::recv_short) ? 1 : size, flags, nullptr, nullptr);
}

#define FAILS_WITH(failure, result, name, parameters, arguments) \
    result __real_##name parameters;                             \
    result __wrap_##name parameters { return due(Kind::libpq_call) ? result(failure) : __real_##name arguments; }
FAILS_WITH(0, int, PQenterPipelineMode, (PGconn * connection), (connection))
FAILS_WITH(0, int, PQexitPipelineMode, (PGconn * connection), (connection))
FAILS_WITH(0, int, PQpipelineSync, (PGconn * connection), (connection))
FAILS_WITH(0, int, PQconsumeInput, (PGconn * connection), (connection))
FAILS_WITH(0, int, PQsendPrepare, (PGconn * connection, const char* name, const char* sql, int count, const Oid* types),
           (connection, name, sql, count, types))
FAILS_WITH(0, int, PQsendQueryPrepared,
           (PGconn * connection, const char* name, int count, const char* const* values, const int* lengths,
            const int* formats, int format),
           (connection, name, count, values, lengths, formats, format))
FAILS_WITH(0, int, PQsendQueryParams,
           (PGconn * connection, const char* sql, int count, const Oid* types, const char* const* values,
            const int* lengths, const int* formats, int format),
           (connection, sql, count, types, values, lengths, formats, format))
FAILS_WITH(PGRES_POLLING_FAILED, PostgresPollingStatusType, PQconnectPoll, (PGconn * connection), (connection))

PGconn* __real_PQconnectStartParams(const char* const* names, const char* const* values, int expand);
PGconn* __wrap_PQconnectStartParams(const char* const* names, const char* const* values, int expand) {
    return due(Kind::libpq_call) ? nullptr : __real_PQconnectStartParams(names, values, expand);
}

PGresult* __real_PQexec(PGconn* connection, const char* sql);
PGresult* __wrap_PQexec(PGconn* connection, const char* sql) {
    return due(Kind::libpq_call) ? nullptr : counted(__real_PQexec(connection, sql));
}

void __real_PQclear(PGresult* result);
PGresult* __real_PQgetResult(PGconn* connection);
PGresult* __wrap_PQgetResult(PGconn* connection) {
    if (due(Kind::libpq_call)) {
        return nullptr;
    }
    PGresult* const result = __real_PQgetResult(connection);
    if (result != nullptr && due(Kind::libpq_result)) {
        __real_PQclear(result);
        return counted(PQmakeEmptyPGresult(nullptr, PGRES_FATAL_ERROR));
    }
    return counted(result);
}

void __wrap_PQclear(PGresult* result) {
    results -= result != nullptr ? 1 : 0;
    __real_PQclear(result);
}

}  // extern "C"

void* operator new(std::size_t size) {
    void* const memory = due(Kind::operator_new) ? nullptr : __libc_malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    ++objects;
    return memory;
}

void operator delete(void* memory) noexcept {
    objects -= memory != nullptr ? 1 : 0;
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
