// The table idempotency_keys: SQL text, kept plans, and what their errors mean.
// Called by claim, complete, save_final, cleanup and stats.
#include "store.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "pg/arguments.hpp"
#include "pg/compat.hpp"
#include "sqlstates.hpp"

namespace idempotency {
namespace {

enum Statement {
    insert_statement,
    insert_completed_statement,
    find_statement,
    remove_expired_statement,
    complete_statement,
    remove_expired_batch_statement,
    remove_expired_batch_of_default_partition_statement,
    count_statement,
    count_expired_statement,
    earliest_expiry_statement,
    summary_statement,
    statement_count
};

struct StatementText {
    const char* sql;  ///< %s is the quoted schema
    std::array<Oid, 9> types;
    int parameters;
};

// The outer condition is checked again on the newest version of a row: one that was renewed meanwhile survives.
#define REMOVE_EXPIRED_BATCH_FROM(table)                                                                             \
    "DELETE FROM %1$s." table                                                                                        \
    " AS k"                                                                                                          \
    " USING (SELECT principal_id, key FROM %1$s." table                                                              \
    " WHERE expires_at OPERATOR(pg_catalog.>=) $2 AND expires_at OPERATOR(pg_catalog.<=) $1"                         \
    " ORDER BY expires_at LIMIT $3 OFFSET $4) AS expired"                                                            \
    " WHERE k.principal_id OPERATOR(pg_catalog.=) expired.principal_id AND k.key OPERATOR(pg_catalog.=) expired.key" \
    " AND k.expires_at OPERATOR(pg_catalog.<=) $1"                                                                   \
    " RETURNING k.expires_at"

// Operators are schema-qualified as well: an operator planted in the caller's search_path changes nothing. No ctid, no SKIP LOCKED, no volatile
// function: the same text then serves a partitioned and a distributed table.
constexpr StatementText statement_texts[statement_count] = {
    {"INSERT INTO %s.idempotency_keys (principal_id, key, action, request_sha256, created_at, expires_at)"
     " VALUES ($1, $2, $3, $4, $5, $6)"
     " ON CONFLICT (principal_id, key) DO NOTHING",
     {UUIDOID, UUIDOID, TEXTOID, BYTEAOID, TIMESTAMPTZOID, TIMESTAMPTZOID},
     6},
    {"INSERT INTO %s.idempotency_keys (principal_id, key, action, request_sha256, created_at, expires_at,"
     " state, response_status, response_body, resource_id)"
     " VALUES ($1, $2, $3, $4, $5, $6, 'completed', $7, $8, $9)"
     " ON CONFLICT (principal_id, key) DO NOTHING",
     {UUIDOID, UUIDOID, TEXTOID, BYTEAOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT2OID, JSONBOID, UUIDOID},
     9},
    {"SELECT state OPERATOR(pg_catalog.=) 'completed', request_sha256, response_status, response_body, resource_id, created_at,"
     " expires_at"
     " FROM %s.idempotency_keys"
     " WHERE principal_id OPERATOR(pg_catalog.=) $1 AND key OPERATOR(pg_catalog.=) $2",
     {UUIDOID, UUIDOID},
     2},
    {"DELETE FROM %s.idempotency_keys"
     " WHERE principal_id OPERATOR(pg_catalog.=) $1 AND key OPERATOR(pg_catalog.=) $2"
     " AND expires_at OPERATOR(pg_catalog.<=) $3",
     {UUIDOID, UUIDOID, TIMESTAMPTZOID},
     3},
    {"UPDATE %s.idempotency_keys"
     " SET state = 'completed', response_status = $3, response_body = $4, resource_id = $5"
     " WHERE principal_id OPERATOR(pg_catalog.=) $1 AND key OPERATOR(pg_catalog.=) $2"
     " AND state OPERATOR(pg_catalog.=) 'in_progress'"
     " RETURNING response_body",
     {UUIDOID, UUIDOID, INT2OID, JSONBOID, UUIDOID},
     5},
    {REMOVE_EXPIRED_BATCH_FROM("idempotency_keys"), {TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT8OID}, 4},
    {REMOVE_EXPIRED_BATCH_FROM("idempotency_keys_default"), {TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT8OID}, 4},
    // From here on the statements of idempotency_stats, which runs with a search_path of its own.
    {"SELECT count(*) FILTER (WHERE state = 'in_progress'), count(*) FILTER (WHERE state = 'completed'),"
     " count(*) FILTER (WHERE expires_at <= $1)"
     " FROM %s.idempotency_keys",
     {TIMESTAMPTZOID},
     1},
    {"SELECT count(*) FROM (SELECT FROM %s.idempotency_keys WHERE expires_at <= $1 LIMIT $2) AS expired",
     {TIMESTAMPTZOID, INT8OID},
     2},
    {"SELECT min(expires_at) FROM %s.idempotency_keys", {}, 0},
    // Rows as the planner estimates them: the density found by the last ANALYZE, times the size now. Fractions from its
    // statistics: the most common values, and the share of the histogram that lies before the time.
    {"WITH part AS ("
     " SELECT oid, relpages, reltuples, pg_relation_size(oid) AS heap_bytes FROM pg_class"
     " WHERE oid = ANY (ARRAY(SELECT $1 UNION SELECT relid FROM pg_partition_tree($1)))"
     "), known AS ("
     " SELECT attname, most_common_freqs AS frequencies, most_common_vals::text AS common,"
     " histogram_bounds::text AS bounds,"
     " row_number() OVER (PARTITION BY attname ORDER BY inherited DESC) AS choice"
     " FROM pg_stats JOIN pg_namespace ON nspname = schemaname"
     " JOIN pg_class ON relnamespace = pg_namespace.oid AND relname = tablename AND pg_class.oid = $1"
     ") SELECT"
     " (SELECT sum(heap_bytes)::bigint FROM part),"
     " (SELECT sum(pg_table_size(oid))::bigint FROM part),"
     " (SELECT sum(pg_indexes_size(oid))::bigint FROM part),"
     " (SELECT sum(reltuples::float8 / relpages * heap_bytes / current_setting('block_size')::float8) FROM part"
     " WHERE relpages > 0 AND reltuples >= 0),"
     " (SELECT coalesce((SELECT sum(frequency) FROM unnest(common::text[], frequencies) AS c (value, frequency)"
     " WHERE value = 'in_progress'), 0)::float8 FROM known WHERE attname = 'state' AND choice = 1),"
     " (SELECT coalesce((SELECT sum(frequency) FROM unnest(common::timestamptz[], frequencies) AS c (value, frequency)"
     " WHERE value <= $2), 0)::float8"
     " + (1 - coalesce((SELECT sum(frequency) FROM unnest(frequencies) AS f (frequency)), 0))::float8"
     " * coalesce((SELECT avg((bound <= $2)::integer) FROM unnest(bounds::timestamptz[]) AS h (bound)), 0)::float8"
     " FROM known WHERE attname = 'expires_at' AND choice = 1)",
     {OIDOID, TIMESTAMPTZOID},
     2},
};

// What the session remembers. Plans outlive a change of search_path; a renamed or moved schema makes them void.
SPIPlanPtr kept_plans[statement_count];
char kept_schema[NAMEDATALEN];
bool schema_is_current = false;
bool invalidation_registered = false;

void forget_schema(Datum, int, uint32) { schema_is_current = false; }

const char* schema_name(Oid function) {
    return pg::call([&] {
        const char* const name = get_namespace_name(get_func_namespace(function));
        if (name == nullptr) {
            ereport(ERROR,
                    (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("extension pg_idempotency is no longer installed")));
        }
        return name;
    });
}

void remember_schema(Oid function) {
    if (schema_is_current) {
        return;
    }
    const char* const name = schema_name(function);
    if (std::strcmp(name, kept_schema) != 0) {
        // Not freed: a statement that is running further up may still use one, and a schema is renamed once in years.
        std::ranges::fill(kept_plans, nullptr);
        strlcpy(kept_schema, name, sizeof kept_schema);
    }
    if (!invalidation_registered) {
        pg::call([] {
            CacheRegisterSyscacheCallback(NAMESPACEOID, forget_schema, 0);
            CacheRegisterSyscacheCallback(PROCOID, forget_schema, 0);
        });
        invalidation_registered = true;
    }
    schema_is_current = true;
}

SPIPlanPtr plan_of(Statement statement) {
    if (kept_plans[statement] == nullptr) {
        const StatementText& text = statement_texts[statement];
        pg::call([&] {
            const char* const schema = quote_identifier(kept_schema);
            SPIPlanPtr plan =
                SPI_prepare(psprintf(text.sql, schema), text.parameters, const_cast<Oid*>(text.types.data()));
            if (plan == nullptr) {
                elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
            }
            pg::require_success(SPI_keepplan(plan));
            kept_plans[statement] = plan;
        });
    }
    return kept_plans[statement];
}

/// Notes how deep in triggers an error was raised: the foreign key's check and users' triggers run deeper than the statement
/// itself. That tells a wait for another writer's row from a wait for the principal's row, whatever the language of the messages.
struct TriggerDepth {
    static int now() { return DatumGetInt32(pg_trigger_depth(nullptr)); }
    static void note(void* self) { static_cast<TriggerDepth*>(self)->at_error = now(); }

    int before = now();
    int at_error = before;
};

bool shows_unexpected_table(int sqlstate) {
    switch (sqlstate) {
        case ERRCODE_UNDEFINED_TABLE:
        case ERRCODE_UNDEFINED_COLUMN:
        case ERRCODE_UNDEFINED_FUNCTION:
        case ERRCODE_DATATYPE_MISMATCH:
        case ERRCODE_WRONG_OBJECT_TYPE:
        case ERRCODE_INVALID_COLUMN_REFERENCE:  // no unique constraint on (principal_id, key)
        case ERRCODE_NOT_NULL_VIOLATION:        // a column that is not ours
            return true;
        default:
            return false;
    }
}

/// Else it is maintenance or statistics, which give no answer to a request.
bool writes_one_key(Statement statement) { return statement <= complete_statement; }

/// A partition for the key was made while its row was on the way to the default partition; a check constraint would have a name.
bool shows_new_partition(const pg::ServerError& error) {
    return error.sqlstate() == ERRCODE_CHECK_VIOLATION && error.data() != nullptr &&
           error.data()->constraint_name == nullptr;
}

/// Says in our own words what an error of one of our statements means, or raises it again as it is.
[[noreturn]] void explain(const pg::ServerError& error, const TriggerDepth& depth, Statement statement) {
    const bool in_trigger = depth.at_error > depth.before;
    if (!in_trigger && writes_one_key(statement) && error.sqlstate() == ERRCODE_LOCK_NOT_AVAILABLE) {
        pg::fail(sqlstates::request_in_progress, "the first request with this key is still in progress",
                 "Another transaction wrote the key and did not end within lock_timeout.",
                 "Roll back, wait and repeat the request with the same key.");
    }
    if (!in_trigger && shows_new_partition(error)) {
        pg::fail(ERRCODE_T_R_SERIALIZATION_FAILURE, "the partition of the key was made at the same moment",
                 "idempotency_maintain_partitions added it.", "Repeat the transaction.");
    }
    if (!in_trigger && shows_unexpected_table(error.sqlstate())) {
        const char* const message = error.data() != nullptr ? error.data()->message : "out of memory";
        const bool missing =
            error.sqlstate() == ERRCODE_UNDEFINED_TABLE || error.sqlstate() == ERRCODE_INVALID_SCHEMA_NAME;
        pg::fail(sqlstates::table_not_expected,
                 missing ? std::string("table idempotency_keys is missing")
                         : std::string("table idempotency_keys is not the expected one"),
                 "In the schema \"" + std::string(kept_schema) + "\" of the extension: " + message + ".",
                 "Apply the migration 00002_idempotency_keys.sql in that schema.");
    }
    if (in_trigger && error.sqlstate() == ERRCODE_FOREIGN_KEY_VIOLATION && error.data() != nullptr &&
        error.data()->hint == nullptr) {
        error.data()->hint = const_cast<char*>("Insert the principal first, or pass the id of an existing one.");
    }
    throw error;
}

/// Runs one kept statement. SPI_tuptable then holds its rows.
/// @return rows returned or written
std::uint64_t run(Statement statement, std::span<const Datum> values, const char* nulls = nullptr,
                  bool in_callers_snapshot = false) {
    TriggerDepth depth;
    std::optional<pg::ServerError> error;
    try {
        SPIPlanPtr plan = plan_of(statement);
        return pg::call([&] {
            ErrorContextCallback note{error_context_stack, TriggerDepth::note, &depth};
            error_context_stack = &note;
            const int code = SPI_execute_plan(plan, const_cast<Datum*>(values.data()), nulls, in_callers_snapshot, 0);
            error_context_stack = note.previous;
            if (code < 0) {
                elog(ERROR, "SPI_execute_plan failed: %s", SPI_result_code_string(code));
            }
            return SPI_processed;
        });
    } catch (const pg::ServerError& server_error) {
        error = server_error;
    }
    explain(*error, depth, statement);
}

/// A column of a row that the last statement returned; nothing for NULL.
std::optional<Datum> column(int number, std::uint64_t row = 0) {
    bool is_null = false;
    const Datum value =
        pg::call([&] { return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, number, &is_null); });
    return is_null ? std::nullopt : std::optional(value);
}

std::int64_t integer_column(int number) { return DatumGetInt64(column(number).value_or(Int64GetDatum(0))); }

std::optional<double> number_column(int number) {
    const auto value = column(number);
    return value ? std::optional(DatumGetFloat8(*value)) : std::nullopt;
}

/// Copies a variable-length value out of SPI's memory.
Datum kept(Datum value) {
    return pg::call([&] {
        const MemoryContext caller = MemoryContextSwitchTo(pg::entry_memory());
        const Datum copy = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
        MemoryContextSwitchTo(caller);
        return copy;
    });
}

Uuid uuid_of(Datum value) {
    Uuid uuid;
    std::memcpy(uuid.bytes.data(), DatumGetUUIDP(value)->data, uuid.bytes.size());
    return uuid;
}

constexpr char null_flag(bool is_null) { return is_null ? 'n' : ' '; }

/// More tries than rows that others delete meanwhile can explain: something swallows ours.
constexpr int insert_tries_max = 1000;

bool insert(const NewKey& key) {
    const std::array values{pg::uuid_datum(key.principal_id),
                            pg::uuid_datum(key.key),
                            key.action,
                            key.request_sha256,
                            TimestampTzGetDatum(key.created_at),
                            TimestampTzGetDatum(key.expires_at)};
    return run(insert_statement, values) == 1;
}

bool insert_completed(const NewKey& key, const StoredAnswer& answer) {
    const std::array values{pg::uuid_datum(key.principal_id),
                            pg::uuid_datum(key.key),
                            key.action,
                            key.request_sha256,
                            TimestampTzGetDatum(key.created_at),
                            TimestampTzGetDatum(key.expires_at),
                            Int16GetDatum(answer.status),
                            answer.body.value_or(Datum{}),
                            answer.resource_id ? pg::uuid_datum(*answer.resource_id) : Datum{}};
    const char nulls[] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', null_flag(!answer.body), null_flag(!answer.resource_id)};
    return run(insert_completed_statement, values, nulls) == 1;
}

void remove_expired(const NewKey& key) {
    const std::array values{pg::uuid_datum(key.principal_id), pg::uuid_datum(key.key),
                            TimestampTzGetDatum(key.created_at)};
    run(remove_expired_statement, values);
}

}  // namespace

Store::Store(Oid function) { remember_schema(function); }

namespace {

/// @param in_callers_snapshot what was committed when the calling statement began, else what is committed now
std::optional<StoredKey> find_row(const Uuid& principal_id, const Uuid& key, bool in_callers_snapshot) {
    const std::array values{pg::uuid_datum(principal_id), pg::uuid_datum(key)};
    if (run(find_statement, values, nullptr, in_callers_snapshot) == 0) {
        return std::nullopt;
    }
    StoredKey found;
    found.completed = DatumGetBool(column(1).value_or(BoolGetDatum(false)));
    const Datum request_sha256 = kept(*column(2));
    const auto* const hash = reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(DatumGetByteaPP(request_sha256)));
    const std::size_t hash_size = VARSIZE_ANY_EXHDR(DatumGetByteaPP(request_sha256));
    std::copy_n(hash, std::min(hash_size, found.request_sha256.size()), found.request_sha256.begin());
    if (found.completed) {
        found.answer.status = DatumGetInt16(column(3).value_or(Int16GetDatum(0)));
        if (const auto body = column(4)) {
            found.answer.body = kept(*body);
        }
        if (const auto resource_id = column(5)) {
            found.answer.resource_id = uuid_of(*resource_id);
        }
    }
    found.created_at = DatumGetTimestampTz(*column(6));
    found.expires_at = DatumGetTimestampTz(*column(7));
    return found;
}

}  // namespace

std::optional<StoredKey> Store::find(const Uuid& principal_id, const Uuid& key) const {
    return find_row(principal_id, key, false);
}

bool Store::counts_as_absent(const StoredKey& row, const NewKey& key) const {
    if (row.expires_at > key.created_at) {
        return false;
    }
    const std::optional<StoredKey> before = find_row(key.principal_id, key.key, true);
    return before && before->created_at == row.created_at;
}

std::optional<StoredKey> Store::insert_or_find(const NewKey& key, const StoredAnswer* answer) const {
    for (int tries = 0; tries < insert_tries_max; ++tries) {
        if (answer == nullptr ? insert(key) : insert_completed(key, *answer)) {
            return std::nullopt;
        }
        if (const std::optional<StoredKey> row = find(key.principal_id, key.key)) {
            if (!counts_as_absent(*row, key)) {
                return row;
            }
            remove_expired(key);
        }
        pg::check_for_interrupts();
    }
    pg::fail(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "table idempotency_keys does not keep the key",
             "Its row was neither inserted nor found, again and again.",
             "Look for a trigger, rule or row-level security policy on the table that hides or drops rows.");
}

std::optional<StoredAnswer> Store::complete(const Uuid& principal_id, const Uuid& key,
                                            const StoredAnswer& answer) const {
    const std::array values{pg::uuid_datum(principal_id), pg::uuid_datum(key), Int16GetDatum(answer.status),
                            answer.body.value_or(Datum{}),
                            answer.resource_id ? pg::uuid_datum(*answer.resource_id) : Datum{}};
    const char nulls[] = {' ', ' ', ' ', null_flag(!answer.body), null_flag(!answer.resource_id)};
    if (run(complete_statement, values, nulls) == 0) {
        return std::nullopt;
    }
    StoredAnswer stored = answer;
    const auto body = column(1);
    stored.body = body ? std::optional(kept(*body)) : std::nullopt;
    return stored;
}

RemovedBatch Store::remove_expired_batch(TimestampTz at, const BatchRange& range, ExpiredIn where) const {
    const std::array values{TimestampTzGetDatum(at), TimestampTzGetDatum(range.from), Int64GetDatum(range.limit),
                            Int64GetDatum(range.skipped)};
    RemovedBatch removed;
    const std::uint64_t rows =
        run(where == ExpiredIn::whole_table ? remove_expired_batch_statement
                                            : remove_expired_batch_of_default_partition_statement,
            values);
    for (std::uint64_t row = 0; row < rows; ++row) {
        const TimestampTz expires_at = DatumGetTimestampTz(*column(1, row));
        removed.deleted += 1;
        removed.earliest = std::min(removed.earliest, expires_at);
        removed.latest = std::max(removed.latest, expires_at);
    }
    return removed;
}

KeyCounts Store::count(TimestampTz at) const {
    const std::array values{TimestampTzGetDatum(at)};
    run(count_statement, values);
    return {integer_column(1), integer_column(2), integer_column(3)};
}

std::int64_t Store::count_expired(TimestampTz at, std::int64_t limit) const {
    const std::array values{TimestampTzGetDatum(at), Int64GetDatum(limit)};
    run(count_expired_statement, values);
    return integer_column(1);
}

std::optional<TimestampTz> Store::earliest_expiry() const {
    run(earliest_expiry_statement, {});
    const auto expires_at = column(1);
    return expires_at ? std::optional(DatumGetTimestampTz(*expires_at)) : std::nullopt;
}

TableSummary Store::summary(TimestampTz at) const {
    const Oid table =
        pg::call([] { return get_relname_relid("idempotency_keys", get_namespace_oid(kept_schema, true)); });
    const std::array values{ObjectIdGetDatum(table), TimestampTzGetDatum(at)};
    run(summary_statement, values);
    return {integer_column(1), integer_column(2), integer_column(3),
            number_column(4),  number_column(5),  number_column(6)};
}

std::string quoted_schema(Oid function) {
    const char* const name = schema_name(function);
    return pg::call([&] { return quote_identifier(name); });
}

}  // namespace idempotency
