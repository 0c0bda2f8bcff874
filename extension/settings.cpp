// The settings idempotency.*, with their limits and descriptions.
// Called by _PG_init; the variables are read by the subjects.
#include "settings.hpp"

#include <climits>

#include "pg/server.hpp"

namespace idempotency::settings {

int key_ttl = 0;
int cleanup_interval = 0;
int cleanup_batch_size = 0;
int partition_interval = 0;
int wait_timeout = 0;
int clock_skew = -1;
int claim = static_cast<int>(Claim::row);
bool require_complete = true;

namespace {

/// Shown only: which library a session has loaded, whatever SQL objects the database has.
char* version = nullptr;

constexpr int seconds_a_minute = 60;
constexpr int seconds_an_hour = 60 * seconds_a_minute;
constexpr int seconds_a_day = 24 * seconds_an_hour;

constexpr config_enum_entry claims[] = {
    {"row", static_cast<int>(Claim::row), false}, {"lock", static_cast<int>(Claim::lock), false}, {nullptr, 0, false}};

}  // namespace

void define() {
    DefineCustomIntVariable("idempotency.key_ttl", "Life of an idempotency key.",
                            "A key older than this counts as absent. Used when idempotency_begin gets no ttl.",
                            &key_ttl, seconds_a_day, 1, INT_MAX, PGC_USERSET, GUC_UNIT_S, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.cleanup_interval", "Time between two scheduled cleanups.",
                            "Read by idempotency_schedule_cleanup.", &cleanup_interval, 5 * seconds_a_minute, 1,
                            seconds_a_day, PGC_USERSET, GUC_UNIT_S, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.cleanup_batch_size", "Expired keys that cleanup deletes in one transaction.",
                            "Used when idempotency_cleanup gets no batch_size.", &cleanup_batch_size, 1000, 1, INT_MAX,
                            PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.partition_interval", "Time that one partition of the key table holds.",
                            "Read by idempotency_maintain_partitions for the partitions that it makes.",
                            &partition_interval, 6 * seconds_an_hour, seconds_a_minute, INT_MAX, PGC_USERSET,
                            GUC_UNIT_S, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.wait_timeout", "How long a repeat waits for the first request with its key.",
                            "-1: lock_timeout decides. 0: it does not wait. Else milliseconds.", &wait_timeout, -1, -1,
                            INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "idempotency.clock_skew", "How far clocks may differ when the time in a new key is checked against its life.",
        "-1: the time is not looked at. Else a key that is older than its ttl is refused, and one that is"
        " ahead of the clock, both by more than this (IK006, IK007).",
        &clock_skew, -1, -1, seconds_a_day, PGC_USERSET, GUC_UNIT_S, nullptr, nullptr, nullptr);
    DefineCustomEnumVariable("idempotency.claim", "What idempotency_begin claims a key with.",
                             "row: a row in progress, that idempotency_complete completes. lock: the key's lock alone;"
                             " idempotency_complete writes the row.",
                             &claim, static_cast<int>(Claim::row), claims, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable(
        "idempotency.require_complete", "Refuses to commit a transaction that leaves a key in progress.",
        "A forgotten idempotency_complete (IK002) would answer every repeat with in_progress until the key expires.",
        &require_complete, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
    DefineCustomStringVariable("idempotency.version", "Version of the loaded library.", nullptr, &version,
                               IDEMPOTENCY_VERSION, PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr,
                               nullptr, nullptr);
    MarkGUCPrefixReserved("idempotency");
}

}  // namespace idempotency::settings
