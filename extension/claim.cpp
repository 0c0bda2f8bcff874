// begin: claims a key for this transaction, or tells what became of it.
// Called by the entry points idempotency_begin and idempotency_begin_request.
#include <algorithm>
#include <cstring>

#include "core/fingerprint.hpp"
#include "fingerprint.hpp"
#include "key_lock.hpp"
#include "request.hpp"
#include "settings.hpp"
#include "sqlstates.hpp"
#include "started_keys.hpp"
#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

/// What begin tells: the columns of its result.
struct Claim {
    const char* outcome = nullptr;
    StoredAnswer answer;                    ///< only for replay
    std::optional<TimestampTz> expires_at;  ///< for started and replay
};

Claim claim_of(const StoredKey& stored, Datum request_sha256) {
    if (!stored.completed) {
        return {"in_progress", {}, std::nullopt};
    }
    const auto* const hash = reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(DatumGetPointer(request_sha256)));
    if (!std::equal(stored.request_sha256.begin(), stored.request_sha256.end(), hash)) {
        return {"reuse", {}, std::nullopt};
    }
    return {"replay", stored.answer, stored.expires_at};
}

/// With idempotency.clock_skew: refuses a key that has no row and whose own time says that it must have had one, or that it cannot be
/// there yet. Closes the hole of a retry that comes after its row was deleted.
void check_time_of(const NewKey& key) {
    if (settings::clock_skew < 0 || key.key.version() != 7) {
        return;
    }
    constexpr std::int64_t milliseconds_before_2000 =
        (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * std::int64_t{SECS_PER_DAY} * 1000;
    const TimestampTz made_at = (key.key.unix_milliseconds() - milliseconds_before_2000) * 1000;
    const std::int64_t life = key.expires_at - key.created_at;
    const std::int64_t skew = settings::clock_skew * USECS_PER_SEC;
    if (made_at < key.created_at - life - skew) {
        pg::fail(sqlstates::key_expired, "idempotency key has expired",
                 "By the time in it the key is older than its life, and nothing is stored under it.",
                 "Find out what became of the operation, then repeat it with a new key.");
    }
    if (made_at > key.created_at + skew) {
        pg::fail(sqlstates::key_from_the_future, "idempotency key is from the future",
                 "The time in the key is ahead of the server's clock by more than idempotency.clock_skew.",
                 "Set the clock of the client, and make a new key.");
    }
}

/// Claims the key whose lock this transaction holds.
/// @return the row that is there, or nothing when the key is started
std::optional<StoredKey> start(const Store& store, const NewKey& key) {
    const bool by_lock = settings::claim == static_cast<int>(settings::Claim::lock);
    std::optional<StoredKey> row = by_lock ? store.find(key.principal_id, key.key) : store.insert_or_find(key, nullptr);
    if (by_lock && row && store.counts_as_absent(*row, key)) {
        row.reset();  // complete replaces it
    }
    if (!row) {
        check_time_of(key);
        started_keys::add(key, by_lock);
    }
    return row;
}

Claim claim(Oid function, const NewKey& key) {
    if (started_keys::noted(key.principal_id, key.key) != nullptr) {
        return {"in_progress", {}, std::nullopt};
    }
    const KeyLock lock(key.principal_id, key.key);
    const pg::Spi spi;
    const Store store(function);
    if (lock.try_acquire() == KeyLock::Acquired::no && !lock.wait()) {
        return {"in_progress", {}, std::nullopt};
    }
    const std::optional<StoredKey> row = start(store, key);
    if (!row) {
        return {"started", {}, key.expires_at};
    }
    lock.release();  // at once, so that waiting repeats do not queue behind this one's round trips
    return claim_of(*row, key.request_sha256);
}

/// The row type of begin's result, made once a session.
TupleDesc result_descriptor() {
    static TupleDesc descriptor = nullptr;
    if (descriptor == nullptr) {
        pg::call([] {
            const MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
            TupleDesc made = CreateTemplateTupleDesc(5);
            TupleDescInitEntry(made, 1, "outcome", TEXTOID, -1, 0);
            TupleDescInitEntry(made, 2, "response_status", INT2OID, -1, 0);
            TupleDescInitEntry(made, 3, "response_body", JSONBOID, -1, 0);
            TupleDescInitEntry(made, 4, "resource_id", UUIDOID, -1, 0);
            TupleDescInitEntry(made, 5, "expires_at", TIMESTAMPTZOID, -1, 0);
            descriptor = BlessTupleDesc(made);
            MemoryContextSwitchTo(caller);
        });
    }
    return descriptor;
}

Datum row_of(const Claim& claim) {
    const bool answered = std::strcmp(claim.outcome, "replay") == 0;
    Datum values[] = {pg::text_datum(claim.outcome), Int16GetDatum(claim.answer.status),
                      claim.answer.body.value_or(Datum{}),
                      claim.answer.resource_id ? pg::uuid_datum(*claim.answer.resource_id) : Datum{},
                      TimestampTzGetDatum(claim.expires_at.value_or(0))};
    bool nulls[] = {false, !answered, !claim.answer.body, !claim.answer.resource_id, !claim.expires_at};
    const TupleDesc descriptor = result_descriptor();
    return pg::call([&] { return HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)); });
}

}  // namespace

Datum begin(FunctionCallInfo fcinfo) {
    const pg::Arguments arguments(fcinfo);
    NewKey key = key_arguments(arguments);
    set_life(key, arguments, 4, 5);
    return row_of(claim(fcinfo->flinfo->fn_oid, key));
}

Datum begin_request(FunctionCallInfo fcinfo) {
    const pg::Arguments arguments(fcinfo);
    NewKey key{};
    key.principal_id = arguments.uuid(0, "principal_id");
    const std::optional<Uuid> parsed = parse_key(arguments.bytes(1, "key"));
    if (!parsed) {
        pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "key is not a UUID of version 7",
                 "The value of Idempotency-Key must be one UUIDv7, bare or in double quotes.",
                 "Make a new UUIDv7 for each operation and repeat it with each retry.");
    }
    key.key = *parsed;
    key.action = action_argument(arguments, 2);
    key.request_sha256 = fingerprint_of(arguments, 3);
    set_life(key, arguments, 6, 7);
    return row_of(claim(fcinfo->flinfo->fn_oid, key));
}

}  // namespace idempotency
