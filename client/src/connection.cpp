// One connection to PostgreSQL.
// Made by the pool or the application; used by transactions.
#include "idempotency/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "connection_state.hpp"
#include "idempotency/error.hpp"

namespace idempotency {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits until the socket can be used as `event` says, or the deadline passes.
bool wait_for(int socket, short event, Clock::time_point deadline) {
    pollfd waiting{socket, event, 0};
    for (;;) {
        int timeout = -1;
        if (deadline != Clock::time_point::max()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
            timeout = static_cast<int>(std::clamp<long long>(left, 0, 1'000'000));
        }
        const int ready = poll(&waiting, 1, timeout);
        if (ready > 0) {
            return true;
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

/// Whether the server has closed the connection, or says something that nobody asked for.
bool hung_up(PGconn* connection) {
    pollfd idle{PQsocket(connection), POLLIN, 0};
    if (poll(&idle, 1, 0) <= 0) {
        return false;
    }
    return PQconsumeInput(connection) == 0 || PQstatus(connection) != CONNECTION_OK;
}

}  // namespace

Connection::Connection(const std::string& conninfo, Clock::time_point deadline) : state_(std::make_unique<State>()) {
    // The connection string stands for dbname and is taken apart by libpq; what it sets wins over the fallback.
    const std::array<const char*, 3> names{"dbname", "fallback_application_name", nullptr};
    const std::array<const char*, 3> values{conninfo.c_str(), "idempotency", nullptr};
    state_->handle.reset(PQconnectStartParams(names.data(), values.data(), 1));
    PGconn* const handle = state_->handle.get();
    if (handle == nullptr) {
        throw std::bad_alloc();
    }
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (status != PGRES_POLLING_OK) {
        if (PQstatus(handle) == CONNECTION_BAD || status == PGRES_POLLING_FAILED) {
            throw Unavailable("could not connect: " + message_of(handle));
        }
        if (!wait_for(PQsocket(handle), status == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline)) {
            throw Unavailable("could not connect in time");
        }
        status = PQconnectPoll(handle);
    }
    // Notices go to the application's log only when it asks libpq for them.
    PQsetNoticeProcessor(
        handle, [](void*, const char*) {}, nullptr);
}

Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

PGconn* Connection::native_handle() const noexcept { return state_->handle.get(); }

bool Connection::reusable() const noexcept {
    PGconn* const handle = native_handle();
    return PQstatus(handle) == CONNECTION_OK && PQtransactionStatus(handle) == PQTRANS_IDLE &&
           PQpipelineStatus(handle) == PQ_PIPELINE_OFF && state_->names_given < State::most_names && !hung_up(handle);
}

}  // namespace idempotency
