// The settings idempotency.*: what an operator may turn.
// Read by the subjects; defined once, when the library is loaded.
#pragma once

namespace idempotency::settings {

extern int key_ttl;             ///< idempotency.key_ttl, seconds: life of a key
extern int cleanup_interval;    ///< idempotency.cleanup_interval, seconds: time between two scheduled cleanups
extern int cleanup_batch_size;  ///< idempotency.cleanup_batch_size, rows that cleanup deletes in one transaction
extern int partition_interval;  ///< idempotency.partition_interval, seconds that one partition of the table holds
extern int wait_timeout;        ///< idempotency.wait_timeout, milliseconds; 0: do not wait; -1: lock_timeout decides
extern int clock_skew;          ///< idempotency.clock_skew, seconds; -1: the time in a key is not looked at

/// What keeps others from a key while its request runs: a row (and the key's lock), or the lock alone.
enum class Claim : int { row, lock };
extern int claim;  ///< idempotency.claim, a Claim

extern bool require_complete;  ///< idempotency.require_complete: a started key must be completed before COMMIT

/// Defines them. Called by _PG_init.
void define();

}  // namespace idempotency::settings
