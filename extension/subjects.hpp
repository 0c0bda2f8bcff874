// What the SQL functions do, one function each; the bodies of the entry points.
// Called by entry_points.cpp inside pg::entry; each may throw.
#pragma once

#include "pg/boundary.hpp"

namespace idempotency {

// claim.cpp
Datum begin(FunctionCallInfo fcinfo);
Datum begin_request(FunctionCallInfo fcinfo);

// answer.cpp
Datum complete(FunctionCallInfo fcinfo);
Datum save_final(FunctionCallInfo fcinfo);

// fingerprint.cpp
Datum fingerprint(FunctionCallInfo fcinfo);
Datum canonical_json(FunctionCallInfo fcinfo);

// cleanup.cpp
Datum cleanup(FunctionCallInfo fcinfo);

// partitions.cpp
Datum maintain_partitions(FunctionCallInfo fcinfo);

// stats.cpp
Datum stats(FunctionCallInfo fcinfo);

// schedule.cpp
Datum schedule_cleanup(FunctionCallInfo fcinfo);
Datum unschedule_cleanup(FunctionCallInfo fcinfo);

}  // namespace idempotency
