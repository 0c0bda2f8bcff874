// stats: how full the table is and whether the cleanup keeps up.
// Called by the entry point idempotency_stats.
#include <algorithm>
#include <cmath>

#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

/// Up to this size every row is read, in milliseconds; a larger table is estimated, so that asking stays cheap.
constexpr std::int64_t counted_bytes_max = std::int64_t{8} * 1024 * 1024;

/// Expired keys are counted in the index up to here, also in a large table: a cleanup that keeps up leaves fewer.
constexpr std::int64_t counted_expired_max = 10000;

struct Statistics {
    std::optional<std::int64_t> in_progress;
    std::optional<std::int64_t> completed;
    std::int64_t expired = 0;
    bool estimated = false;
};

Statistics counted(const KeyCounts& counts) { return {counts.in_progress, counts.completed, counts.expired, false}; }

Statistics estimated(const TableSummary& summary, std::int64_t expired_counted) {
    Statistics statistics;
    statistics.estimated = true;
    const double rows = summary.rows.value_or(0);
    if (summary.rows && summary.in_progress_fraction) {
        statistics.in_progress = std::llround(rows * *summary.in_progress_fraction);
        statistics.completed = std::llround(rows) - *statistics.in_progress;
    }
    statistics.expired = expired_counted;
    if (expired_counted == counted_expired_max) {
        statistics.expired =
            std::max<std::int64_t>(expired_counted, std::llround(rows * summary.expired_fraction.value_or(0)));
    }
    return statistics;
}

/// The row type of the result, made once a session.
TupleDesc result_descriptor() {
    static TupleDesc descriptor = nullptr;
    if (descriptor == nullptr) {
        pg::call([] {
            const MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
            TupleDesc made = CreateTemplateTupleDesc(7);
            TupleDescInitEntry(made, 1, "in_progress", INT8OID, -1, 0);
            TupleDescInitEntry(made, 2, "completed", INT8OID, -1, 0);
            TupleDescInitEntry(made, 3, "expired", INT8OID, -1, 0);
            TupleDescInitEntry(made, 4, "earliest_expiry", TIMESTAMPTZOID, -1, 0);
            TupleDescInitEntry(made, 5, "table_bytes", INT8OID, -1, 0);
            TupleDescInitEntry(made, 6, "index_bytes", INT8OID, -1, 0);
            TupleDescInitEntry(made, 7, "estimated", BOOLOID, -1, 0);
            descriptor = BlessTupleDesc(made);
            MemoryContextSwitchTo(caller);
        });
    }
    return descriptor;
}

}  // namespace

Datum stats(FunctionCallInfo fcinfo) {
    const TimestampTz now = GetCurrentTimestamp();
    const pg::Spi spi;
    const Store store(fcinfo->flinfo->fn_oid);
    const std::optional<TimestampTz> earliest_expiry = store.earliest_expiry();
    const TableSummary summary = store.summary(now);
    const Statistics statistics = summary.heap_bytes <= counted_bytes_max
                                      ? counted(store.count(now))
                                      : estimated(summary, store.count_expired(now, counted_expired_max));

    Datum values[] = {Int64GetDatum(statistics.in_progress.value_or(0)),
                      Int64GetDatum(statistics.completed.value_or(0)),
                      Int64GetDatum(statistics.expired),
                      TimestampTzGetDatum(earliest_expiry.value_or(0)),
                      Int64GetDatum(summary.table_bytes),
                      Int64GetDatum(summary.index_bytes),
                      BoolGetDatum(statistics.estimated)};
    bool nulls[] = {!statistics.in_progress, !statistics.completed, false, !earliest_expiry, false, false, false};
    const TupleDesc descriptor = result_descriptor();
    const MemoryContext result_memory = pg::entry_memory();
    return pg::call([&] {
        const MemoryContext caller = MemoryContextSwitchTo(result_memory);
        const Datum row = HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
        MemoryContextSwitchTo(caller);
        return row;
    });
}

}  // namespace idempotency
