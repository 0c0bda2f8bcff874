// The key store: the SQL functions of the extension as three calls.
// Used by the stage; an application without HTTP (a queue consumer) uses it with a unit of work.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fingerprint.hpp"
#include "core/uuid.hpp"
#include "idempotency/transaction.hpp"

namespace idempotency {

/// A request with a key (the seed's "Port", type Request).
struct KeyedRequest {
    Uuid principal_id;                        ///< who the key belongs to: principals.id
    Uuid key;                                 ///< Idempotency-Key, a UUIDv7
    std::string action;                       ///< what the operation is called, e.g. "orders.create"
    Fingerprint request_sha256{};             ///< fingerprint of the request
    std::optional<std::chrono::seconds> ttl;  ///< life of the key; nothing: the server's idempotency.key_ttl
};

/// A final answer (the seed's "Port", type Response).
struct Answer {
    int status = 0;                   ///< 2xx or a final error (final_status.hpp)
    std::optional<std::string> body;  ///< JSON text; nothing for an answer without a body
    std::optional<Uuid> resource_id;  ///< the resource that the operation made or changed
};

enum class Outcome {
    started,      ///< the key is ours: run the operation, then complete
    replay,       ///< the key was completed with this fingerprint: give the stored answer
    reuse,        ///< the key was completed with another fingerprint
    in_progress,  ///< the first request with this key still runs
};

struct BeginResult {
    Outcome outcome = Outcome::in_progress;
    Answer answer;  ///< the stored answer; only for replay
};

struct StoreOptions {
    /// The schema that the extension is installed in.
    std::string schema = "public";
};

/// Calls idempotency_begin, idempotency_complete and idempotency_save_final. Has no state but its options; safe to share.
class Store {
public:
    explicit Store(const StoreOptions& options = {});

    /// Claims the key in this transaction, or tells what became of it. Waits for a running first request at most lock_timeout.
    /// @throws Error with the server's SQLSTATE, e.g. 23503 for an unknown principal
    [[nodiscard]] BeginResult begin(Transaction& transaction, const KeyedRequest& request) const;

    /// Lets the claim travel with the transaction's next statement. When its outcome is not started, that statement throws KeyNotStarted.
    void begin_deferred(Transaction& transaction, const KeyedRequest& request) const;

    /// What a deferred claim told when it did not start the key; nothing when it did, or was not sent yet.
    [[nodiscard]] std::optional<BeginResult> refused(const Transaction& transaction) const;

    /// Whether the row of a claim says started. For the shim only.
    [[nodiscard]] static bool started(const Result& claim);

    /// Stores a 2xx answer for a key that begin started in this transaction.
    /// @return the body as stored: give exactly this to the client, so that a replay cannot differ
    /// @throws Error IK003 when this transaction did not start the key, IK004 when the status is not 2xx
    std::optional<std::string> complete(Transaction& transaction, const KeyedRequest& request,
                                        const Answer& answer) const;

    /// The same, and COMMIT, in one round trip. The transaction has ended, whatever comes of it.
    /// @throws Error as complete; in_doubt() when the connection was lost meanwhile
    std::optional<std::string> complete_and_commit(Transaction& transaction, const KeyedRequest& request,
                                                   const Answer& answer) const;

    /// Runs a statement whose only row is the answer, completes the key with it and commits, in one round trip; in a deferred operation together
    /// with the claim. The transaction has ended.
    /// @param statement one INSERT, UPDATE, DELETE or SELECT that gives (status integer, body jsonb, resource_id uuid), e.g.
    ///                  INSERT INTO orders (sku) VALUES ($1) RETURNING 201, jsonb_build_object('id', id), id
    /// @return the answer as stored, or nothing when the statement gave no row; then nothing was committed
    /// @throws Error as complete_and_commit, and the statement's own; KeyNotStarted
    std::optional<Answer> finish_with(Transaction& transaction, const KeyedRequest& request, std::string_view statement,
                                      std::vector<Parameter> parameters) const;

    /// Stores a final error and commits, in one round trip: for a transaction of its own, after the operation's was rolled back. An answer that
    /// is there already stays.
    /// @return the body as stored
    /// @throws Error IK004 when the status is not a final error
    std::optional<std::string> save_final(Transaction& transaction, const KeyedRequest& request,
                                          const Answer& answer) const;

private:
    std::string begin_;
    std::string complete_;
    std::string save_final_;
    std::string complete_function_;
};

}  // namespace idempotency
