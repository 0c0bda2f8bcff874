// Steps of the maintenance procedures: whose turn it is, and what is in the way.
// Called by cleanup and partitions.
#include "maintenance.hpp"

#include <string>

namespace idempotency::maintenance {

void require_own_transaction(FunctionCallInfo fcinfo, const char* procedure) {
    const bool may_commit = fcinfo->context != nullptr && IsA(fcinfo->context, CallContext) &&
                            !reinterpret_cast<CallContext*>(fcinfo->context)->atomic;
    if (!may_commit) {
        const std::string name = procedure;
        pg::fail(ERRCODE_ACTIVE_SQL_TRANSACTION, name + " cannot run inside a transaction block",
                 "It commits after every step.", "Run CALL " + name + "() on its own, outside BEGIN and functions.");
    }
}

void wait_for_turn() {
    constexpr std::uint16_t maintenance_lock_class = 0x4943;  // "IC" in ASCII, shown as objsubid in pg_locks
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, maintenance_lock_class);
    pg::call([&] { (void)LockAcquire(&tag, ExclusiveLock, false, false); });
}

void commit() {
    pg::call([] { SPI_commit(); });
}

bool is_in_use(int sqlstate) {
    return sqlstate == ERRCODE_LOCK_NOT_AVAILABLE || sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED ||
           sqlstate == ERRCODE_T_R_SERIALIZATION_FAILURE;
}

}  // namespace idempotency::maintenance
