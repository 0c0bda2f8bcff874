// cleanup: deletes expired keys, batch after batch, each in a transaction of its own.
// Called by the entry point idempotency_cleanup, by hand or from pg_cron.
#include <algorithm>
#include <string>

#include "maintenance.hpp"
#include "pg/arguments.hpp"
#include "settings.hpp"
#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

/// How long a batch waits for a row that another transaction uses.
constexpr const char* row_wait = "20ms";

/// A notice tells of the progress each time so many batches are done.
constexpr std::int64_t batches_a_notice = 100;

struct Progress {
    std::int64_t deleted = 0;
    std::int64_t batches = 0;
};

/// @return nothing when one of the rows is in use; then none was deleted
std::optional<RemovedBatch> remove_batch(const Store& store, TimestampTz at, const BatchRange& range, ExpiredIn where) {
    RemovedBatch removed;
    const bool undisturbed =
        maintenance::give_way(row_wait, [&] { removed = store.remove_expired_batch(at, range, where); });
    return undisturbed ? std::optional(removed) : std::nullopt;
}

void count(Progress& done, const RemovedBatch& removed) {
    done.deleted += removed.deleted;
    done.batches += 1;
    if (done.batches % batches_a_notice == 0) {
        pg::call(
            [&] { ereport(NOTICE, errmsg("expired idempotency keys deleted so far: " INT64_FORMAT, done.deleted)); });
    }
}

void tell_end(const Progress& done, bool left_some) {
    pg::call([&] {
        ereport(NOTICE,
                (errmsg("expired idempotency keys deleted: " INT64_FORMAT ", batches: " INT64_FORMAT, done.deleted,
                        done.batches),
                 left_some ? errdetail("Keys that other transactions use were left for the next cleanup.") : 0));
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

}  // namespace

void maintenance::delete_expired(Oid function, TimestampTz at, std::int64_t batch_size, ExpiredIn where) {
    Progress done;
    BatchRange range{.limit = batch_size};
    std::int64_t skip_step = 1;
    bool left_some = false;
    for (;;) {
        wait_for_turn();
        const std::optional<RemovedBatch> removed = remove_batch(Store(function), at, range, where);
        commit();
        if (!removed) {
            // Row by row up to the one that is in use; then past it, in growing steps when there are many.
            if (range.limit == 1) {
                range.skipped += skip_step;
                skip_step *= 2;
                left_some = true;
            }
            range.limit = 1;
        } else if (removed->deleted > 0) {
            count(done, *removed);
            if (range.skipped == 0 || removed->earliest < removed->latest) {
                range.from = removed->latest;  // later than every row that was passed over
                range.skipped = 0;
            }
            range.limit = std::min(batch_size, 2 * range.limit);
            skip_step = 1;
        } else if (range.limit < batch_size) {
            range.limit = batch_size;  // the few rows of this batch were renewed meanwhile
        } else {
            break;
        }
        pg::check_for_interrupts();
    }
    tell_end(done, left_some);
}

Datum cleanup(FunctionCallInfo fcinfo) {
    const std::int64_t batch_size = batch_size_of(fcinfo);
    maintenance::require_own_transaction(fcinfo, "idempotency_cleanup");
    const pg::Spi spi(SPI_OPT_NONATOMIC);
    maintenance::delete_expired(fcinfo->flinfo->fn_oid, GetCurrentTimestamp(), batch_size, ExpiredIn::whole_table);
    return Datum{};
}

}  // namespace idempotency
