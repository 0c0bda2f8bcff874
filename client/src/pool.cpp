// A small pool of connections.
// Used by applications that do not bring their own source.
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "idempotency/connection.hpp"
#include "idempotency/error.hpp"

namespace idempotency {

struct Pool::Shared {
    std::string conninfo;
    std::size_t maximum = 0;
    std::mutex mutex;
    std::condition_variable returned;
    std::vector<std::unique_ptr<Connection>> idle;
    std::size_t open = 0;  ///< idle, lent and being connected
};

Pool::Pool(std::string conninfo, std::size_t maximum) : shared_(std::make_unique<Shared>()) {
    if (maximum == 0) {
        throw std::invalid_argument("a pool needs room for at least one connection");
    }
    shared_->conninfo = std::move(conninfo);
    shared_->maximum = maximum;
    shared_->idle.reserve(maximum);  // release() must not allocate
}

Pool::~Pool() = default;

std::unique_ptr<Connection> Pool::acquire(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(shared_->mutex);
    for (;;) {
        while (!shared_->idle.empty()) {
            std::unique_ptr<Connection> connection = std::move(shared_->idle.back());
            shared_->idle.pop_back();
            if (connection->reusable()) {
                return connection;
            }
            --shared_->open;  // the server went away while it was idle
        }
        if (shared_->open < shared_->maximum) {
            break;
        }
        if (shared_->returned.wait_until(lock, deadline) == std::cv_status::timeout && shared_->idle.empty() &&
            shared_->open >= shared_->maximum) {
            throw Unavailable("every connection of the pool is in use");
        }
    }
    ++shared_->open;
    lock.unlock();
    try {
        return std::make_unique<Connection>(shared_->conninfo, deadline);
    } catch (...) {
        lock.lock();
        --shared_->open;
        lock.unlock();
        shared_->returned.notify_one();
        throw;
    }
}

void Pool::release(std::unique_ptr<Connection> connection) noexcept {
    const bool reusable = connection->reusable();
    {
        const std::scoped_lock lock(shared_->mutex);
        if (reusable) {
            shared_->idle.push_back(std::move(connection));
        } else {
            --shared_->open;
        }
    }
    shared_->returned.notify_one();
    // A connection that is not kept is closed here, outside the lock.
}

}  // namespace idempotency
