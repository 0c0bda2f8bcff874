// The HTTP stage: runs a keyed operation once and replays its answer (the seed's "Algorithm", "One-time secrets", "Replay").
// Called by an adapter for every request; calls the operation's handler.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/uuid.hpp"
#include "idempotency/connection.hpp"
#include "idempotency/http.hpp"
#include "idempotency/observer.hpp"
#include "idempotency/problem.hpp"
#include "idempotency/store.hpp"
#include "idempotency/transaction.hpp"
#include "idempotency/unit_of_work.hpp"

namespace idempotency {

/// What the stage knows of an operation of the API.
struct Operation {
    std::string action;                      ///< its name, kept with the key, e.g. "orders.create"
    bool keyed = false;                      ///< declares the Idempotency-Key header; else the header has no effect
    std::vector<int> etag_statuses;          ///< statuses whose replay carries ETag from the body's version
    std::size_t body_limit = 1024 * 1024;    ///< bytes; a larger body is answered 413
};

/// Who sends the request. An anonymous actor has no principal, so no keys: its requests pass through the stage.
struct Actor {
    std::optional<Uuid> principal_id;

    [[nodiscard]] bool anonymous() const noexcept { return !principal_id; }
};

/// What a handler may use while it runs. Valid during that call only.
class Context {
public:
    Context(Transaction& transaction, const Operation& operation, const Actor& actor, const std::string& correlation_id,
            int attempt);

    /// The transaction that the effect belongs to. Committed with the answer when the handler answers 2xx, else rolled back.
    [[nodiscard]] Transaction& transaction() const noexcept { return transaction_; }
    [[nodiscard]] const Operation& operation() const noexcept { return operation_; }
    [[nodiscard]] const Actor& actor() const noexcept { return actor_; }
    /// The request's Correlation-Id, or one made for it.
    [[nodiscard]] const std::string& correlation_id() const noexcept { return correlation_id_; }
    /// 1 for the first attempt, 2 for the first retry, ...
    [[nodiscard]] int attempt() const noexcept { return attempt_; }

    /// The answer carries a secret that is shown once: it is never stored, and a replay is answered 409 conflict with
    /// reason one_time_secret (the seed's "One-time secrets").
    void mark_one_time_secret() noexcept { one_time_secret_ = true; }
    [[nodiscard]] bool one_time_secret_marked() const noexcept { return one_time_secret_; }

private:
    Transaction& transaction_;
    const Operation& operation_;
    const Actor& actor_;
    const std::string& correlation_id_;
    int attempt_;
    bool one_time_secret_ = false;
};

/// An operation's code. Gets the whole request, returns the whole answer; called again, with a new Context, when the database asks for
/// a new attempt. May throw: an Error of the database is mapped (docs/errors.md), anything else is 500.
using Handler = std::function<http::Response(const http::Request&, Context&)>;

/// Finds out who sends a request: an actor, or the problem that refuses it (401, 403). May throw as a handler may.
using Authenticate = std::function<std::variant<Actor, Problem>(const http::Request&)>;

struct StageOptions {
    /// Life of a key; nothing: the server's idempotency.key_ttl (the seed's sync.idempotency_key_ttl).
    std::optional<std::chrono::seconds> key_ttl;
    /// lock_timeout, retries and waiting for a connection.
    UnitOfWorkOptions unit_of_work;
    /// Where the extension is, and how its functions are called.
    StoreOptions store;
    /// Largest answer that is stored, bytes.
    std::size_t response_limit = 1024 * 1024;
    /// Told of every outcome; must outlive the stage and be safe to call from several threads. May be null.
    Observer* observer = nullptr;
};

/// Runs operations. Safe to call from several threads; one Stage serves a whole application.
class Stage {
public:
    /// @param source must outlive the stage
    Stage(ConnectionSource& source, StageOptions options);

    /// Answers one request. Acts on the key when the operation is keyed, the request carries Idempotency-Key and the actor is not
    /// anonymous; else runs the handler in a plain transaction. Every failure becomes an answer.
    /// @return the answer, always whole; never throws but for std::bad_alloc
    [[nodiscard]] http::Response handle(const Operation& operation, const Actor& actor, const http::Request& request,
                                        const Handler& handler) const;

    /// The same for an actor that is found out from the request. A refusal is never stored.
    [[nodiscard]] http::Response handle(const Operation& operation, const Authenticate& authenticate,
                                        const http::Request& request, const Handler& handler) const;

    /// Answers a request that belongs to no operation (404, 405, ...) in the stage's manner.
    [[nodiscard]] http::Response refuse(const http::Request& request, const Problem& problem) const;

private:
    class Run;

    ConnectionSource& source_;
    StageOptions options_;
    Store store_;
    Observer& observer_;
};

}  // namespace idempotency
