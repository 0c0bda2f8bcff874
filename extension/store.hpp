// The table idempotency_keys: every SQL statement that the extension runs on it, and the only place with SQL text for it.
// Used by claim, complete, save_final, cleanup and stats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/fingerprint.hpp"
#include "core/uuid.hpp"
#include "pg/spi.hpp"

namespace idempotency {

/// A key to be claimed: what a new row is made of.
struct NewKey {
    Uuid principal_id;
    Uuid key;
    Datum action;          ///< text
    Datum request_sha256;  ///< bytea of 32 bytes
    TimestampTz created_at;
    TimestampTz expires_at;
};

/// A final answer as the table holds it.
struct StoredAnswer {
    std::int16_t status = 0;
    std::optional<Datum> body;  ///< jsonb, in the entry memory
    std::optional<Uuid> resource_id;
};

/// A row of the table.
struct StoredKey {
    bool completed = false;
    Fingerprint request_sha256{};
    StoredAnswer answer;  ///< only when completed
    TimestampTz created_at = 0;
    TimestampTz expires_at = 0;
};

/// Which of the expired rows a batch of the cleanup takes.
struct BatchRange {
    std::int64_t limit = 0;
    TimestampTz from =
        DT_NOBEGIN;            ///< the earliest expires_at; later than those that are gone, which the index still holds
    std::int64_t skipped = 0;  ///< how many to pass over there
};

/// What a batch of the cleanup deleted.
struct RemovedBatch {
    std::int64_t deleted = 0;
    TimestampTz earliest = DT_NOEND;  ///< expires_at
    TimestampTz latest = DT_NOBEGIN;  ///< expires_at
};

/// Which rows a cleanup looks at.
enum class ExpiredIn {
    whole_table,
    default_partition,  ///< of a partitioned table: the others go as a whole
};

/// How many keys there are, counted.
struct KeyCounts {
    std::int64_t in_progress = 0;
    std::int64_t completed = 0;
    std::int64_t expired = 0;  ///< of both
};

/// What the catalog knows of the table and its partitions; estimates are missing until the table was analyzed.
struct TableSummary {
    std::int64_t heap_bytes = 0;
    std::int64_t table_bytes = 0;  ///< with TOAST
    std::int64_t index_bytes = 0;
    std::optional<double> rows;
    std::optional<double> in_progress_fraction;
    std::optional<double> expired_fraction;
};

/// The statements, in the schema that the extension is installed in; the caller's search_path changes nothing. Needs an open SPI connection for its
/// whole life. Plans are kept for the session. Whatever shows that the table is not the expected one raises IK005.
class Store {
public:
    /// @param function the OID of any function of the extension: its schema is where the table is
    explicit Store(Oid function);

    /// Inserts a row for the key, or finds the one that is there. A row that counts as absent is replaced.
    /// @param answer null for a key in progress, else the row is completed at once
    /// @return nothing when the row was inserted, else the row that is there
    /// @throws pg::ServerError IK001 when the wait for another writer's row ended with lock_timeout; a 55P03 from the foreign
    ///         key or from a trigger stays 55P03
    [[nodiscard]] std::optional<StoredKey> insert_or_find(const NewKey& key, const StoredAnswer* answer) const;

    [[nodiscard]] std::optional<StoredKey> find(const Uuid& principal_id, const Uuid& key) const;

    /// Whether a row that was found counts as absent: it has expired, and was there when the calling statement began. A row that came
    /// since is the answer of a request that ran at the same time: running this one as well would be a second effect, however short the ttl.
    [[nodiscard]] bool counts_as_absent(const StoredKey& row, const NewKey& key) const;

    /// Completes a key in progress.
    /// @return the answer as stored, or nothing when no such key is in progress
    [[nodiscard]] std::optional<StoredAnswer> complete(const Uuid& principal_id, const Uuid& key,
                                                       const StoredAnswer& answer) const;

    /// Deletes rows that have expired at `at`, the oldest first.
    /// @throws pg::ServerError 55P03 when lock_timeout ended the wait for a row that another transaction uses
    [[nodiscard]] RemovedBatch remove_expired_batch(TimestampTz at, const BatchRange& range, ExpiredIn where) const;

    /// Reads every row.
    [[nodiscard]] KeyCounts count(TimestampTz at) const;

    /// Reads at most `limit` entries of the index on expires_at.
    [[nodiscard]] std::int64_t count_expired(TimestampTz at, std::int64_t limit) const;

    /// The earliest expires_at in the table; nothing when it is empty.
    [[nodiscard]] std::optional<TimestampTz> earliest_expiry() const;

    /// Sizes, and what the planner's statistics say; reads the catalog only.
    [[nodiscard]] TableSummary summary(TimestampTz at) const;
};

/// The schema of the extension as a quoted identifier, found by one of its functions.
[[nodiscard]] std::string quoted_schema(Oid function);

}  // namespace idempotency
