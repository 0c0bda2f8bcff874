// Checks of the cleanup: its job, the partitions, and what has expired.
// Read by examine.cpp.
#include "check.hpp"

namespace doctor {
namespace {

constexpr std::string_view rights_on_jobs =
    "GRANT USAGE ON SCHEMA cron TO {role};\n"
    "GRANT SELECT ON cron.job, cron.job_run_details TO {role};";

constexpr std::string_view expired_sql = R"(
WITH {key_table}, lag AS (
  SELECT now() - stats.earliest_expiry AS lag, stats.expired,
    greatest(2 * current_setting('idempotency.cleanup_interval')::interval, interval '1 minute') AS allowed
  FROM idempotency_stats() AS stats
)
SELECT 'ok', format('expired keys that wait for the cleanup: %s', expired) || CASE WHEN partitioned THEN '; most go with their partition' ELSE '' END, ''
FROM key_table, lag
UNION ALL
SELECT CASE WHEN lag > interval '1 day' THEN 'critical' ELSE 'warning' END,
  format('the cleanup does not keep up; expired keys: %s, the oldest %s ago', expired, date_trunc('second', lag)),
  format('CALL %I.idempotency_cleanup();', schema)
FROM key_table, lag WHERE lag > allowed AND NOT partitioned AND NOT hidden{or_hidden_rows})";

// A partition is compared with the table's rows in its range; the server looks only into that one.
constexpr std::string_view partitions_sql = R"(
WITH {key_table}, bound AS (
  SELECT format('%I.%I', n.nspname, c.relname) AS name, pg_get_expr(c.relpartbound, c.oid) AS text
  FROM key_table AS t JOIN pg_inherits AS i ON i.inhparent = t.oid JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
), range AS (
  SELECT name, coalesce(substring(text FROM 'FROM \(''([0-9a-f-]+)''\)'), '00000000-0000-0000-0000-000000000000')::uuid AS first_key,
    coalesce(substring(text FROM 'TO \(''([0-9a-f-]+)''\)'), 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid AS end_key
  FROM bound WHERE text <> 'DEFAULT'
), partition AS (
  SELECT range.*, to_timestamp(('x0000' || translate(left(end_key::text, 13), '-', ''))::bit(64)::bigint / 1000.0) AS until FROM range
), now_key AS (
  SELECT rpad(lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0'), 32, '0')::uuid AS key
), state AS (
  SELECT EXISTS (SELECT FROM partition, now_key WHERE key >= first_key AND key < end_key) AS has_now,
    EXISTS (SELECT FROM bound WHERE text = 'DEFAULT') AS has_default, (SELECT max(until) FROM partition) AS until,
    current_setting('idempotency.partition_interval')::interval AS step
)
SELECT 'ok', CASE WHEN partitioned THEN format('partitions up to %s', until) ELSE 'the table is not partitioned' END, '' FROM key_table, state
UNION ALL
SELECT problem.status, problem.found, format('CALL %I.idempotency_maintain_partitions();', t.schema)
FROM key_table AS t, state AS s, LATERAL (VALUES
  (CASE WHEN NOT has_now AND has_default THEN 'warning' WHEN NOT has_now THEN 'critical' END,
   CASE WHEN has_default THEN 'no partition holds the keys of now: they go to the default partition, whose rows are deleted one by one'
     ELSE 'no partition holds the keys of now: idempotency_begin fails' END),
  (CASE WHEN has_now AND until < now() + step THEN 'warning' END, format('the last partition ends at %s', until)),
  (CASE WHEN NOT t.hidden AND EXISTS (
     SELECT FROM partition AS p, LATERAL (
       SELECT max(expires_at) AS last FROM idempotency_keys WHERE key >= p.first_key AND key < p.end_key) AS k
     WHERE p.until < now() AND coalesce(k.last, p.until) < now() - interval '1 hour' - 2 * current_setting('idempotency.cleanup_interval')::interval)
   THEN 'warning' END, 'there are partitions whose keys have all expired')
) AS problem (status, found)
WHERE t.partitioned AND problem.status IS NOT NULL{or_hidden_rows})";

}  // namespace

const std::string_view cron_place_sql = R"(
WITH {key_table}, cron AS (
  SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_cron') AS is_here, EXISTS (SELECT FROM pg_settings WHERE name LIKE 'cron.%') AS is_loaded,
    (SELECT setting FROM pg_settings WHERE name = 'cron.database_name') AS database_name,
    pg_has_role('pg_read_all_settings', 'USAGE') AS may_look,
    current_setting('server_version_num')::integer / 10000 AS major
), settings AS (
  SELECT (SELECT setting FROM pg_settings WHERE name = 'shared_preload_libraries') AS libraries,
    coalesce((SELECT setting FROM pg_settings WHERE name = 'config_file'), 'postgresql.conf') AS config_file
)
SELECT CASE WHEN is_here OR database_name <> current_database() THEN 'look in' WHEN may_look THEN 'warning' ELSE 'unknown' END,
  CASE WHEN is_here THEN current_database()::text
    WHEN database_name <> current_database() THEN database_name
    WHEN database_name IS NOT NULL THEN 'pg_cron is loaded, but not created in this database: nothing calls the cleanup, unless you do'
    WHEN NOT may_look THEN 'where pg_cron keeps its jobs: this role may not read cron.database_name'
    ELSE 'pg_cron is not loaded: nothing calls the cleanup, unless you do' END,
  CASE WHEN NOT may_look AND NOT is_here THEN format('GRANT pg_monitor TO %I;', CURRENT_USER)
    WHEN database_name <> current_database() AND NOT is_here THEN format('SELECT cron.schedule_in_database(%L, ''*/5 * * * *'', %L, %L);',
      'idempotency_cleanup ' || current_database(),
      format('CALL %I.%s()', t.schema, CASE WHEN partitioned THEN 'idempotency_maintain_partitions' ELSE 'idempotency_cleanup' END), current_database())
    ELSE concat_ws(E'\n',
      CASE WHEN NOT is_loaded THEN concat_ws(E'\n',
        CASE WHEN NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_cron') THEN format('$ sudo apt install postgresql-%s-cron', major) END,
        format('ALTER SYSTEM SET shared_preload_libraries = %s;', concat_ws(', ', nullif(libraries, ''), 'pg_cron')),
        format('$ echo "cron.database_name = ''%s''" | sudo tee -a %s', current_database(), config_file), '$ sudo systemctl restart postgresql') END,
      CASE WHEN NOT is_here THEN 'CREATE EXTENSION pg_cron;' END, format('SELECT %I.idempotency_schedule_cleanup();', t.schema)) END,
  quote_ident(database_name), partitioned
FROM key_table AS t, cron, settings)";

const std::string_view cron_job_sql = R"(
WITH job AS (
  SELECT j.jobid, j.jobname, j.schedule, j.command, j.username, j.active, run.status, run.return_message, run.start_time,
    NOT $3::boolean OR j.command LIKE '%maintain_partitions%' AS fits
  FROM cron.job AS j
  LEFT JOIN LATERAL (
    SELECT d.status, d.return_message, d.start_time FROM cron.job_run_details AS d
    WHERE d.jobid = j.jobid AND d.status IN ('succeeded', 'failed') ORDER BY d.runid DESC LIMIT 1) AS run ON true
  WHERE j.database = $1::text AND j.command ~* '^\s*CALL\s.*idempotency_(cleanup|maintain_partitions)\s*\('
), hidden AS (
  SELECT row_security_active('cron.job'::regclass) AND NOT EXISTS (
    SELECT FROM pg_policy WHERE polrelid = 'cron.job'::regclass AND pg_get_expr(polqual, polrelid) = 'true'
    AND EXISTS (SELECT FROM unnest(polroles) AS r (role) WHERE role = 0 OR pg_has_role(role, 'USAGE'))) AS hidden
)
SELECT 'ok', format('the job %s, %s, as %I; last run: %s', coalesce(jobname, jobid::text), schedule, username, coalesce(status || ' at ' || start_time, 'none yet')), ''
FROM job WHERE active AND fits
UNION ALL
SELECT 'unknown', 'whether the cleanup is scheduled: pg_cron shows this role its own jobs only', concat_ws(E'\n',
  format('CREATE POLICY %I ON cron.job FOR SELECT TO %I USING (true);', CURRENT_USER || '_sees_all', CURRENT_USER),
  format('CREATE POLICY %I ON cron.job_run_details FOR SELECT TO %I USING (true);', CURRENT_USER || '_sees_all', CURRENT_USER))
FROM hidden WHERE hidden AND NOT EXISTS (SELECT FROM job)
UNION ALL
SELECT 'warning', 'the cleanup is not scheduled: nothing calls it, unless you do', $2::text
FROM hidden WHERE NOT hidden AND NOT EXISTS (SELECT FROM job)
UNION ALL
SELECT 'warning', format('the job %s is switched off', coalesce(jobname, jobid::text)), format('SELECT cron.alter_job(%s, active => true);', jobid)
FROM job WHERE NOT active AND NOT EXISTS (SELECT FROM job WHERE active)
UNION ALL
SELECT 'warning', format('the job %s deletes row by row, and the partitions are not maintained', coalesce(jobname, jobid::text)),
  format(E'SELECT cron.unschedule(%s);\n%s', jobid, $2::text)
FROM job WHERE NOT fits AND NOT EXISTS (SELECT FROM job WHERE fits)
UNION ALL
SELECT 'warning', format('the last run of the job %s failed: %s', coalesce(jobname, jobid::text), btrim(return_message, E' \n')),
  CASE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = username AND NOT pg_has_role(oid, (SELECT oid FROM pg_roles WHERE rolname = 'idempotency_worker'), 'USAGE'))
    THEN format('GRANT idempotency_worker TO %I;', username)
    ELSE format(E'\\connect %I\nSET ROLE %I;\n%s;\nRESET ROLE;', $1::text, username, rtrim(command, '; ')) END
FROM job WHERE active AND status = 'failed')";

std::vector<Check> cleanup_checks() {
    return {
        {.name = "cleanup_job",
         .about = "pg_cron runs the cleanup, and its last run succeeded",
         .needs = Needs::table,
         .sql = cron_place_sql,
         .rights = rights_on_jobs},
        {.name = "partitions",
         .about = "partitions for now and ahead, none that should be gone",
         .needs = Needs::table,
         .loads_library = true,
         .in_schema = true,
         .sql = partitions_sql,
         .rights = rights_on_rows},
        {.name = "expired",
         .about = "the cleanup keeps up",
         .needs = Needs::table,
         .loads_library = true,
         .in_schema = true,
         .sql = expired_sql,
         .rights = rights_on_rows},
    };
}

}  // namespace doctor
