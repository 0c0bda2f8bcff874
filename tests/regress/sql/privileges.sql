-- What each role may do: the owner, members of idempotency_app and of idempotency_worker, and a role without grants.
SET client_min_messages = warning;
CREATE ROLE regress_app LOGIN IN ROLE idempotency_app;
CREATE ROLE regress_worker LOGIN IN ROLE idempotency_worker;
CREATE ROLE regress_nobody LOGIN;
RESET client_min_messages;

-- Runs a statement as a role: ok, or the SQLSTATE. Right of the function but wrong of the moment: IK003 (nothing begun), 25001 (cleanup in a
-- transaction), 42704 (no pg_cron here).
CREATE FUNCTION try(role text, statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', role);
  EXECUTE statement;
  RESET ROLE;
  RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
CREATE TABLE attempts (number serial, statement text);
INSERT INTO attempts (statement) VALUES
  ($$SELECT idempotency_begin('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c501', 'x', sha256('x'))$$),
  ($$SELECT idempotency_begin_request('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c501', 'x', 'POST', '/')$$),
  ($$SELECT idempotency_complete('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c502', 204)$$),
  ($$SELECT idempotency_save_final('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c503', 'x', sha256('x'), 404)$$),
  ($$SELECT idempotency_fingerprint('POST', '/')$$),
  ($$SELECT idempotency_canonical_json('{}')$$),
  ($$CALL idempotency_cleanup()$$),
  ($$CALL idempotency_maintain_partitions()$$),
  ($$SELECT idempotency_stats()$$),
  ($$SELECT idempotency_schedule_cleanup()$$),
  ($$SELECT idempotency_unschedule_cleanup()$$),
  ($$SELECT FROM idempotency_waiting$$),
  ($$SELECT FROM idempotency_keys$$),
  ($$DELETE FROM idempotency_keys WHERE false$$),
  ($$UPDATE idempotency_keys SET state = 'completed' WHERE false$$),
  ($$TRUNCATE idempotency_keys$$),
  ($$INSERT INTO principals VALUES (gen_random_uuid())$$);
SET idempotency.require_complete = off;
SELECT regexp_replace(statement, '\(.*', '') AS statement, try(CURRENT_USER, statement) AS owner, try('regress_app', statement) AS app,
       try('regress_worker', statement) AS worker, try('regress_nobody', statement) AS nobody
FROM attempts ORDER BY number;
RESET idempotency.require_complete;
-- Nothing that the extension made is missing from the list.
SELECT objid::regprocedure AS not_tried FROM pg_depend JOIN pg_extension ON pg_extension.oid = refobjid
WHERE extname = 'pg_idempotency' AND classid = 'pg_proc'::regclass
AND NOT EXISTS (SELECT FROM attempts JOIN pg_proc ON pg_proc.oid = objid WHERE strpos(statement, proname || '(') > 0);

-- The whole life of a key with the grants of the migration only.
SET ROLE regress_app;
BEGIN;
SELECT outcome FROM idempotency_begin('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c504', 'x', sha256('x'));
SELECT idempotency_complete('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c504', 201, '{"id": 1}');
COMMIT;
SELECT outcome, response_status, response_body
FROM idempotency_begin('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c504', 'x', sha256('x'));
SELECT idempotency_save_final('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c505', 'x', sha256('x'), 404, '{}',
  ttl => '1 second', at => '2020-01-01 00:00+00');
CALL idempotency_cleanup();
\echo :LAST_ERROR_SQLSTATE
SET ROLE regress_worker;
CALL idempotency_cleanup();
SELECT completed > 0 AS completed, expired FROM idempotency_stats();
SET ROLE regress_nobody;
CALL idempotency_cleanup();
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- A role with EXECUTE but without the table is told of the table, and learns nothing.
GRANT EXECUTE ON FUNCTION idempotency_begin(uuid, uuid, text, bytea, interval, timestamptz) TO regress_nobody;
SET ROLE regress_nobody;
SELECT * FROM idempotency_begin('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c504', 'x', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;
REVOKE EXECUTE ON FUNCTION idempotency_begin(uuid, uuid, text, bytea, interval, timestamptz) FROM regress_nobody;

DELETE FROM idempotency_keys;
DROP TABLE attempts;
DROP FUNCTION try;
DROP ROLE regress_app, regress_worker, regress_nobody;
