// The HTTP stage: runs a keyed operation once and replays its answer (the seed's "Algorithm", "One-time secrets", "Replay").
// Called by an adapter for every request; calls the operation's handler.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
    std::string action;                   ///< its name, kept with the key, e.g. "orders.create"
    bool keyed = false;                   ///< declares the Idempotency-Key header; else the header has no effect
    std::vector<int> etag_statuses = {};  ///< statuses whose replay carries ETag from the body's version
    std::size_t body_limit = std::size_t{1024} * 1024;  ///< bytes; a larger body is answered 413
    bool key_required = false;                          ///< a request without Idempotency-Key is answered 400
    /// Location of a 201 answer, first and replayed, with {resource_id} in it: "/api/v1/orders/{resource_id}". Empty: none.
    std::string location = {};
    /// The claim travels with the handler's first statement and saves a round trip. The handler then runs before it is known whether the key is
    /// its own: only for handlers that have no effect outside the transaction.
    bool deferred = false;
};

/// Who sends the request. An anonymous actor has no principal, so no keys: its requests pass through the stage.
struct Actor {
    std::optional<Uuid> principal_id;

    [[nodiscard]] bool anonymous() const noexcept { return !principal_id; }
};

/// What a handler may use while it runs. Valid during that call only.
class Context {
public:
    /// Runs a statement and finishes the request with it.
    using Finish = std::function<std::optional<http::Response>(std::string_view, std::vector<Parameter>)>;

    Context(Transaction& transaction, const Operation& operation, const Actor& actor, const std::string& correlation_id,
            int attempt, Finish finish);

    /// The transaction that the effect belongs to. Committed with the answer when the handler answers 2xx, else rolled back.
    [[nodiscard]] Transaction& transaction() const noexcept { return transaction_; }
    [[nodiscard]] const Operation& operation() const noexcept { return operation_; }
    [[nodiscard]] const Actor& actor() const noexcept { return actor_; }
    /// The request's Correlation-Id, or one made for it.
    [[nodiscard]] const std::string& correlation_id() const noexcept { return correlation_id_; }
    /// 1 for the first attempt, 2 for the first retry, ...
    [[nodiscard]] int attempt() const noexcept { return attempt_; }

    /// For a handler whose answer comes from one statement: runs it, stores the answer and commits, in one round trip; in a deferred operation with
    /// the claim in the same one. Return the answer; you may add headers to it.
    /// @param statement one INSERT, UPDATE, DELETE or SELECT whose only row is (status integer, body jsonb, resource_id uuid), e.g.
    ///                  INSERT INTO orders (sku) VALUES ($1) RETURNING 201, jsonb_build_object('id', id), id
    /// @return nothing when the statement gave no row: then nothing was changed, and the handler answers something else (404, ...)
    /// @throws Error the statement's; KeyNotStarted in a deferred operation, do not catch it
    [[nodiscard]] std::optional<http::Response> finish_with(std::string_view statement,
                                                            std::vector<Parameter> parameters = {}) {
        return finish_(statement, std::move(parameters));
    }

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
    Finish finish_;
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
    /// How long a request may take, from its beginning, before no new attempt is made and no connection is waited for. 0: for ever.
    std::chrono::milliseconds deadline{0};
    /// Keys of HMAC-SHA-256, which then stands in place of SHA-256 in the fingerprint, so that who reads the table cannot guess short bodies. The first
    /// one signs, all are accepted: put a new one in front to rotate. Empty: plain SHA-256.
    std::vector<std::string> fingerprint_keys;
    /// A body with a number that no double holds exactly, or with -0, is compared by its bytes, so that two different amounts never have the
    /// same fingerprint. Off, as RFC 8785 has it: 9007199254740993 and 9007199254740992 are the same number.
    bool exact_numbers = false;
    /// Asked before a replay, for rights that were revoked since; a problem refuses it. May be null.
    std::function<std::optional<Problem>(const Actor&, const Operation&, const http::Request&)> authorize_replay;
    /// Largest answer that is stored, bytes.
    std::size_t response_limit = std::size_t{1024} * 1024;
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
