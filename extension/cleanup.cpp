// cleanup: deletes expired keys, batch after batch, each in a transaction of its own.
// Called by the entry point idempotency_cleanup, by hand or from pg_cron.
#include <algorithm>
#include <string>

#include "pg/arguments.hpp"
#include "settings.hpp"
#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

/// How long a batch waits for a row that another transaction uses. Short, and far below deadlock_timeout: a batch that holds rows must not
/// keep requests waiting, nor be part of a deadlock that another transaction pays for.
constexpr const char* row_wait = "20ms";

/// A notice tells of the progress each time so many batches are done.
constexpr std::uint64_t batches_a_notice = 100;

struct Progress {
    std::uint64_t deleted = 0;
    std::uint64_t batches = 0;
};

/// Held for one batch, so that two cleanups at once take turns: they would meet at the same rows.
void wait_for_turn() {
    constexpr std::uint16_t cleanup_lock_class = 0x4943;  // "IC" in ASCII, shown as objsubid in pg_locks
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, cleanup_lock_class);
    pg::call([&] { (void)LockAcquire(&tag, ExclusiveLock, false, false); });
}

/// The errors that only say that another transaction uses one of the rows.
bool is_row_in_use(int sqlstate) {
    return sqlstate == ERRCODE_LOCK_NOT_AVAILABLE || sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED ||
           sqlstate == ERRCODE_T_R_SERIALIZATION_FAILURE;
}

/// @return how many rows were deleted, or nothing when one of them is in use; then none was
std::optional<std::uint64_t> remove_batch(const Store& store, TimestampTz at, std::int64_t limit,
                                          std::int64_t skipped) {
    std::uint64_t deleted = 0;
    const auto error = pg::attempt([&] {
        const int nest_level = NewGUCNestLevel();
        (void)set_config_option("lock_timeout", row_wait, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
        deleted = store.remove_expired_batch(at, limit, skipped);
        AtEOXact_GUC(true, nest_level);
    });
    if (!error) {
        return deleted;
    }
    if (is_row_in_use(error->sqlstate())) {
        return std::nullopt;
    }
    throw *error;
}

void tell_progress(const Progress& done) {
    pg::call([&] {
        ereport(NOTICE, errmsg("expired idempotency keys deleted so far: " UINT64_FORMAT, done.deleted));
    });
}

void tell_end(const Progress& done, bool skipped) {
    pg::call([&] {
        ereport(NOTICE, (errmsg("expired idempotency keys deleted: " UINT64_FORMAT ", batches: " UINT64_FORMAT,
                                done.deleted, done.batches),
                         skipped ? errdetail("Keys that other transactions use were left for the next cleanup.") : 0));
    });
}

int batch_size_of(FunctionCallInfo fcinfo) {
    const pg::Arguments arguments(fcinfo);
    if (arguments.is_null(0)) {
        return settings::cleanup_batch_size;
    }
    const int batch_size = arguments.integer(0, "batch_size");
    if (batch_size < 1) {
        pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "batch_size must be positive",
                 "It is the number of rows deleted in one transaction.",
                 "Leave the argument out to use idempotency.cleanup_batch_size.");
    }
    return batch_size;
}

void check_may_commit(FunctionCallInfo fcinfo) {
    const bool may_commit = fcinfo->context != nullptr && IsA(fcinfo->context, CallContext) &&
                            !reinterpret_cast<CallContext*>(fcinfo->context)->atomic;
    if (!may_commit) {
        pg::fail(ERRCODE_ACTIVE_SQL_TRANSACTION, "idempotency_cleanup cannot run inside a transaction block",
                 "It commits after every batch.",
                 "Run CALL idempotency_cleanup() on its own, outside BEGIN and functions.");
    }
}

}  // namespace

Datum cleanup(FunctionCallInfo fcinfo) {
    const std::int64_t batch_size = batch_size_of(fcinfo);
    check_may_commit(fcinfo);
    const Oid function = fcinfo->flinfo->fn_oid;
    const TimestampTz now = GetCurrentTimestamp();
    const pg::Spi spi(SPI_OPT_NONATOMIC);

    Progress done;
    std::int64_t limit = batch_size;
    std::int64_t skipped = 0;  // the oldest rows that are passed over: some of them are in use
    std::int64_t skip_step = 1;
    for (;;) {
        wait_for_turn();
        const std::optional<std::uint64_t> deleted = remove_batch(Store(function), now, limit, skipped);
        pg::call([] { SPI_commit(); });
        if (!deleted) {
            // Row by row up to the one that is in use; then past it, in growing steps when there are many.
            if (limit == 1) {
                skipped += skip_step;
                skip_step *= 2;
            }
            limit = 1;
        } else if (*deleted > 0) {
            done.deleted += *deleted;
            done.batches += 1;
            if (done.batches % batches_a_notice == 0) {
                tell_progress(done);
            }
            limit = std::min(batch_size, 2 * limit);
            skip_step = 1;
        } else if (limit < batch_size) {
            limit = batch_size;  // the few rows of this batch were renewed meanwhile
        } else {
            break;
        }
        pg::check_for_interrupts();
    }
    tell_end(done, skipped > 0);
    return Datum{};
}

}  // namespace idempotency
