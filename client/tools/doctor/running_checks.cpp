// Checks of what is going on: keys left in progress, and who waits for whom.
// Read by examine.cpp.
#include "check.hpp"

namespace doctor {
namespace {

// $1: patience, in all of them

constexpr std::string_view in_progress_sql = R"(
WITH {key_table}, stuck AS (
  SELECT stats.estimated, CASE WHEN stats.estimated THEN coalesce(stats.in_progress, 0) ELSE (
    SELECT count(*) FROM idempotency_keys WHERE state = 'in_progress' AND expires_at > now() AND created_at < now() - $1::interval) END AS keys
  FROM idempotency_stats() AS stats
), condition AS (
  SELECT format('state = ''in_progress'' AND expires_at > now() AND created_at < now() - interval ''%s''', $1::interval) AS text
)
SELECT 'ok', 'no key was left in progress', ''
UNION ALL
SELECT 'critical', format('keys that were committed in progress: %s%s; their repeats are told so until they expire', CASE WHEN estimated THEN 'about ' END, keys),
  format($$-- which ones; find out of each whether its operation happened
SELECT principal_id, key, action, created_at FROM %1$s WHERE %2$s;
-- it did (begin and effect committed together, without idempotency_complete): store an answer for the repeats
UPDATE %1$s SET state = 'completed', response_status = 204 WHERE %2$s;
-- it did not: forget the key, and the repeat runs
DELETE FROM %1$s WHERE %2$s;$$, t.name, condition.text) ||
    CASE WHEN estimated THEN format(E'\nANALYZE %s;', t.name) ELSE '' END
FROM key_table AS t, stuck, condition WHERE keys > 0 AND NOT hidden{or_hidden_rows})";

constexpr std::string_view waiting_sql = R"(
SELECT 'ok', format('sessions that wait for a key: %s, none for long', count(*)), '' FROM idempotency_waiting
UNION ALL
SELECT 'warning', format('sessions that wait for the key %s: %s, the longest for %s; it is held by %s', key, count(*), date_trunc('second', max(waiting_for)),
    coalesce(format('session %s, %s', held_by, holder_state), 'a prepared transaction')),
  coalesce(format('SELECT pg_terminate_backend(%s);', held_by), 'SELECT gid, prepared, owner FROM pg_prepared_xacts WHERE database = current_database();')
FROM idempotency_waiting
GROUP BY key, held_by, holder_state HAVING max(waiting_for) > $1::interval)";

constexpr std::string_view idle_holder_sql = R"(
WITH {held_key}, holder AS (
  SELECT h.pid, a.usename, a.state, now() - a.state_change AS idle FROM held AS h JOIN pg_stat_activity AS a ON a.pid = h.pid
)
SELECT 'ok', format('sessions that hold a key: %s, none idle for long', count(*)), '' FROM holder
UNION ALL
SELECT 'unknown', format('what the sessions do that hold a key: %s', count(*)), format('GRANT pg_monitor TO %I;', CURRENT_USER)
FROM holder WHERE state IS NULL HAVING count(*) > 0
UNION ALL
SELECT 'warning', format('session %s of the role %I holds a key and has been idle in its transaction for %s', pid, usename, date_trunc('second', idle)),
  format('SELECT pg_terminate_backend(%s);', pid)
FROM holder WHERE state LIKE 'idle in transaction%' AND idle > $1::interval)";

constexpr std::string_view prepared_sql = R"(
WITH {held_key}, holder AS (
  SELECT p.gid, p.owner, now() - p.prepared AS age FROM held AS h
  JOIN pg_locks AS l ON l.virtualtransaction = h.virtualtransaction AND l.pid IS NULL AND l.locktype = 'transactionid'
  JOIN pg_prepared_xacts AS p ON p.transaction = l.transactionid
  WHERE h.pid IS NULL
)
SELECT 'ok', format('prepared transactions that hold a key: %s, none for long', count(*)), '' FROM holder
UNION ALL
SELECT 'warning', format('the prepared transaction %L of the role %I has held a key for %s', gid, owner, date_trunc('second', age)),
  format(E'COMMIT PREPARED %1$L;\n-- or, when it must not happen: ROLLBACK PREPARED %1$L;', gid)
FROM holder WHERE age > $1::interval)";

}  // namespace

std::vector<Check> running_checks(std::chrono::seconds patience) {
    const idempotency::Parameter longest = std::to_string(patience.count()) + " seconds";
    return {
        {.name = "in_progress",
         .about = "no key was committed in progress",
         .needs = Needs::table,
         .loads_library = true,
         .in_schema = true,
         .sql = in_progress_sql,
         .parameters = {longest},
         .rights = rights_on_rows},
        {.name = "waiting",
         .about = "no repeat waits for long",
         .needs = Needs::table,
         .in_schema = true,
         .sql = waiting_sql,
         .parameters = {longest},
         .rights = "GRANT SELECT ON {schema}.idempotency_waiting TO {role};"},
        {.name = "idle_holder",
         .about = "no session forgot a transaction with a key",
         .needs = Needs::extension,
         .sql = idle_holder_sql,
         .parameters = {longest}},
        {.name = "prepared",
         .about = "no prepared transaction holds a key",
         .needs = Needs::extension,
         .sql = prepared_sql,
         .parameters = {longest}},
    };
}

}  // namespace doctor
