// What the server loads: the entry points, one line each, and _PG_init.
// Called by PostgreSQL; the work is in the subjects.
#include "settings.hpp"
#include "started_keys.hpp"
#include "subjects.hpp"

extern "C" {

PG_MODULE_MAGIC;

void _PG_init(void) {
    idempotency::settings::define();
    idempotency::started_keys::watch_transactions();
}

PG_FUNCTION_INFO_V1(idempotency_begin);
PG_FUNCTION_INFO_V1(idempotency_begin_request);
PG_FUNCTION_INFO_V1(idempotency_complete);
PG_FUNCTION_INFO_V1(idempotency_save_final);
PG_FUNCTION_INFO_V1(idempotency_fingerprint);
PG_FUNCTION_INFO_V1(idempotency_canonical_json);
PG_FUNCTION_INFO_V1(idempotency_cleanup);
PG_FUNCTION_INFO_V1(idempotency_maintain_partitions);
PG_FUNCTION_INFO_V1(idempotency_stats);
PG_FUNCTION_INFO_V1(idempotency_schedule_cleanup);
PG_FUNCTION_INFO_V1(idempotency_unschedule_cleanup);

Datum idempotency_begin(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 6, idempotency::begin); }
Datum idempotency_begin_request(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 8, idempotency::begin_request); }
Datum idempotency_complete(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 5, idempotency::complete); }
Datum idempotency_save_final(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 9, idempotency::save_final); }
Datum idempotency_fingerprint(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 3, idempotency::fingerprint); }
Datum idempotency_canonical_json(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 1, idempotency::canonical_json); }
Datum idempotency_cleanup(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 1, idempotency::cleanup); }
Datum idempotency_maintain_partitions(PG_FUNCTION_ARGS) {
    return pg::entry(fcinfo, 0, idempotency::maintain_partitions);
}
Datum idempotency_stats(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 0, idempotency::stats); }
Datum idempotency_schedule_cleanup(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 0, idempotency::schedule_cleanup); }
Datum idempotency_unschedule_cleanup(PG_FUNCTION_ARGS) { return pg::entry(fcinfo, 0, idempotency::unschedule_cleanup); }

}  // extern "C"
