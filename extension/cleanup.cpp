// cleanup: deletes expired keys, batch after batch, each in a transaction of its own.
// Called by the entry point idempotency_cleanup, by hand or from pg_cron.
#include "pg/arguments.hpp"
#include "settings.hpp"
#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

/// Held for one batch, so that two cleanups at once take turns: they would delete the same rows in different orders and deadlock.
void wait_for_turn() {
    constexpr std::uint16_t cleanup_lock_class = 0x4943;  // "IC" in ASCII, shown as objsubid in pg_locks
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, cleanup_lock_class);
    pg::call([&] { (void)LockAcquire(&tag, ExclusiveLock, false, false); });
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
    const auto batch_size = static_cast<std::uint64_t>(batch_size_of(fcinfo));
    check_may_commit(fcinfo);
    const Oid function = fcinfo->flinfo->fn_oid;
    const TimestampTz now = GetCurrentTimestamp();
    const pg::Spi spi(SPI_OPT_NONATOMIC);
    for (;;) {
        wait_for_turn();
        const std::uint64_t deleted = Store(function).remove_expired_batch(now, static_cast<std::int64_t>(batch_size));
        pg::call([] { SPI_commit(); });
        if (deleted < batch_size) {
            return Datum{};
        }
        pg::check_for_interrupts();
    }
}

}  // namespace idempotency
