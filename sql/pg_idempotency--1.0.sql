-- pg_idempotency 1.0: the SQL interface. The extension holds code only; the table idempotency_keys belongs to the application's
-- migrations, in the schema that the extension is installed in.
\echo Use "CREATE EXTENSION pg_idempotency" to load this file. \quit

CREATE FUNCTION idempotency_begin(
  principal_id uuid,
  key uuid,
  action text,
  request_sha256 bytea,
  ttl interval DEFAULT NULL,
  at timestamptz DEFAULT NULL,
  OUT outcome text,
  OUT response_status smallint,
  OUT response_body jsonb,
  OUT resource_id uuid,
  OUT expires_at timestamptz
)
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_begin';

COMMENT ON FUNCTION idempotency_begin(uuid, uuid, text, bytea, interval, timestamptz) IS
'Claims an idempotency key for this transaction. outcome: started (run the operation, then idempotency_complete), replay (give the stored answer), reuse (the key belongs to another request), in_progress (the first request still runs).';

CREATE FUNCTION idempotency_begin_request(
  principal_id uuid,
  key text,
  action text,
  method text,
  path text,
  body bytea DEFAULT NULL,
  ttl interval DEFAULT NULL,
  at timestamptz DEFAULT NULL,
  OUT outcome text,
  OUT response_status smallint,
  OUT response_body jsonb,
  OUT resource_id uuid,
  OUT expires_at timestamptz
)
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_begin_request';

COMMENT ON FUNCTION idempotency_begin_request(uuid, text, text, text, text, bytea, interval, timestamptz) IS
'As idempotency_begin, with the Idempotency-Key header parsed (a UUIDv7, bare or quoted) and the fingerprint computed in the server.';

CREATE FUNCTION idempotency_complete(
  principal_id uuid,
  key uuid,
  response_status integer,
  response_body jsonb DEFAULT NULL,
  resource_id uuid DEFAULT NULL
)
RETURNS jsonb
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_complete';

COMMENT ON FUNCTION idempotency_complete(uuid, uuid, integer, jsonb, uuid) IS
'Stores the 2xx answer of a key that this transaction started, and returns the body as stored: give exactly that to the client.';

CREATE FUNCTION idempotency_save_final(
  principal_id uuid,
  key uuid,
  action text,
  request_sha256 bytea,
  response_status integer,
  response_body jsonb DEFAULT NULL,
  resource_id uuid DEFAULT NULL,
  ttl interval DEFAULT NULL,
  at timestamptz DEFAULT NULL
)
RETURNS jsonb
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_save_final';

COMMENT ON FUNCTION idempotency_save_final(uuid, uuid, text, bytea, integer, jsonb, uuid, interval, timestamptz) IS
'Stores a final error (400 403 404 409 410 412 413 415 422) after the operation was rolled back. An answer that is there already stays; never waits for a running duplicate.';

CREATE FUNCTION idempotency_fingerprint(method text, path text, body bytea DEFAULT NULL)
RETURNS bytea
LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_fingerprint';

COMMENT ON FUNCTION idempotency_fingerprint(text, text, bytea) IS
'SHA-256 over the upper-case method, the escaped path without query and the canonical body (RFC 8785 when it has a canonical form, else its raw bytes).';

CREATE FUNCTION idempotency_canonical_json(document text)
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_canonical_json';

COMMENT ON FUNCTION idempotency_canonical_json(text) IS
'The canonical form of a JSON document (RFC 8785); an error when it has none.';

CREATE PROCEDURE idempotency_cleanup(batch_size integer DEFAULT NULL)
LANGUAGE c SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_cleanup';

COMMENT ON PROCEDURE idempotency_cleanup(integer) IS
'Deletes expired keys, the oldest first, and commits after every batch. Keys that another transaction uses are left for the next cleanup.';

CREATE FUNCTION idempotency_stats(
  OUT in_progress bigint,
  OUT completed bigint,
  OUT expired bigint,
  OUT earliest_expiry timestamptz,
  OUT table_bytes bigint,
  OUT index_bytes bigint,
  OUT estimated boolean
)
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'idempotency_stats';

COMMENT ON FUNCTION idempotency_stats() IS
'Keys by state, those that expired and were not cleaned yet, and sizes. A small table is counted; of a large one, estimated is true and the counts come from the planner''s statistics.';

-- A waiting session holds its key in two shared locks, a half in each; the lock it waits for is a hash of principal and key. The numbers are
-- those of key_lock.cpp: 18763 the key's lock, 18760 and 18764 the halves.
CREATE VIEW idempotency_waiting WITH (security_invoker = true) AS
WITH lock AS MATERIALIZED (
  SELECT l.pid, l.classid::bigint AS high, l.objid::bigint AS low, l.objsubid AS class, l.granted, l.waitstart
  FROM pg_catalog.pg_locks AS l
  JOIN pg_catalog.pg_database AS d ON d.oid = l.database AND d.datname = pg_catalog.current_database()
  WHERE l.locktype = 'advisory'
  AND l.objsubid IN (18763, 18760, 18764)
)
SELECT
  waiting.pid,
  activity.usename AS role,
  activity.application_name,
  activity.client_addr,
  (pg_catalog.lpad(pg_catalog.to_hex(first.high), 8, '0') || pg_catalog.lpad(pg_catalog.to_hex(first.low), 8, '0')
    || pg_catalog.lpad(pg_catalog.to_hex(second.high), 8, '0') || pg_catalog.lpad(pg_catalog.to_hex(second.low), 8, '0'))::uuid AS key,
  waiting.waitstart AS waiting_since,
  pg_catalog.clock_timestamp() - waiting.waitstart AS waiting_for,
  holding.pid AS held_by,
  holder.xact_start AS held_since,
  holder.state AS holder_state,
  pg_catalog.pg_blocking_pids(waiting.pid) AS blocking_pids,
  activity.query_start,
  activity.query
FROM lock AS waiting
LEFT JOIN lock AS first ON first.pid = waiting.pid AND first.class = 18760
LEFT JOIN lock AS second ON second.pid = waiting.pid AND second.class = 18764
LEFT JOIN lock AS holding ON holding.class = 18763 AND holding.granted AND holding.high = waiting.high AND holding.low = waiting.low
LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = waiting.pid
LEFT JOIN pg_catalog.pg_stat_activity AS holder ON holder.pid = holding.pid
WHERE waiting.class = 18763
AND NOT waiting.granted;

COMMENT ON VIEW idempotency_waiting IS
'Sessions of this database that wait for the first request with their key: which key, how long, and which session holds it.';

CREATE FUNCTION idempotency_schedule_cleanup()
RETURNS bigint
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_schedule_cleanup';

COMMENT ON FUNCTION idempotency_schedule_cleanup() IS
'Schedules idempotency_cleanup every idempotency.cleanup_interval as the pg_cron job idempotency_cleanup, replacing an older one; returns its job id. A second job, idempotency_cleanup_history, trims what pg_cron notes of their runs once a day.';

CREATE FUNCTION idempotency_unschedule_cleanup()
RETURNS boolean
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_unschedule_cleanup';

COMMENT ON FUNCTION idempotency_unschedule_cleanup() IS
'Removes the pg_cron jobs of idempotency_schedule_cleanup; returns whether the cleanup was scheduled.';

REVOKE ALL ON FUNCTION
  idempotency_begin(uuid, uuid, text, bytea, interval, timestamptz),
  idempotency_begin_request(uuid, text, text, text, text, bytea, interval, timestamptz),
  idempotency_complete(uuid, uuid, integer, jsonb, uuid),
  idempotency_save_final(uuid, uuid, text, bytea, integer, jsonb, uuid, interval, timestamptz),
  idempotency_fingerprint(text, text, bytea),
  idempotency_canonical_json(text),
  idempotency_stats(),
  idempotency_schedule_cleanup(),
  idempotency_unschedule_cleanup()
FROM PUBLIC;

REVOKE ALL ON PROCEDURE idempotency_cleanup(integer) FROM PUBLIC;
