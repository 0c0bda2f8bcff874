-- Whatever a caller plants in front of its search_path: every function does what it does without. Each planted object answers wrongly and notes
-- that it was used.
\set principal '''00000000-0000-7000-8000-000000000001'''
\set key '''01890a5d-ac96-7b7c-8f89-37c3d0a6c701'''
CREATE SCHEMA planted;
CREATE TABLE planted.used (what text);
CREATE TABLE planted.idempotency_keys (LIKE idempotency_keys);
CREATE VIEW planted.pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false;
CREATE VIEW planted.pg_stats AS SELECT schemaname, tablename, attname FROM pg_catalog.pg_stats WHERE false;
CREATE VIEW planted.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE false;
CREATE DOMAIN planted.text AS pg_catalog.text CHECK (value IS NULL);
CREATE DOMAIN planted.regclass AS pg_catalog.regclass CHECK (value IS NULL);
-- Operators that always say no, for every type that a column of the table has.
DO $$
DECLARE
  type text;
  operator text;
BEGIN
  FOREACH type IN ARRAY ARRAY['uuid', 'pg_catalog.text', 'timestamptz', 'bytea', 'smallint', 'bigint', 'oid', 'name'] LOOP
    EXECUTE format('CREATE FUNCTION planted.never(%1$s, %1$s) RETURNS boolean LANGUAGE plpgsql AS $f$BEGIN INSERT INTO planted.used VALUES (%2$L); RETURN false; END$f$',
      type, type);
    FOREACH operator IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>='] LOOP
      EXECUTE format('CREATE OPERATOR planted.%1$s (LEFTARG = %2$s, RIGHTARG = %2$s, FUNCTION = planted.never)', operator, type);
    END LOOP;
  END LOOP;
END
$$;
-- Functions with the names and arguments of the server's.
DO $$
DECLARE
  signature text;
BEGIN
  FOREACH signature IN ARRAY ARRAY['now()', 'clock_timestamp()', 'current_database()', 'pg_relation_size(regclass)', 'pg_table_size(regclass)',
    'pg_indexes_size(regclass)', 'pg_blocking_pids(integer)', 'to_hex(bigint)', 'min(timestamptz)'] LOOP
    EXECUTE format('CREATE FUNCTION planted.%s RETURNS integer LANGUAGE plpgsql AS $f$BEGIN INSERT INTO planted.used VALUES (%L); RETURN NULL; END$f$',
      replace(signature, 'regclass', 'pg_catalog.regclass'), signature);
  END LOOP;
END
$$;
CREATE FUNCTION planted.idempotency_complete(uuid, uuid, integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE TEMPORARY TABLE idempotency_keys (LIKE planted.idempotency_keys);
CREATE TEMPORARY TABLE principals (id uuid);

SET search_path = pg_temp, planted, public, pg_catalog;
-- They are in force: this calls one of them.
SELECT key = key AS planted_answer FROM (SELECT '01890a5d-ac96-7b7c-8f89-37c3d0a6c701'::uuid AS key) AS keys;
SELECT what FROM planted.used;
DELETE FROM planted.used;
SELECT public.idempotency_fingerprint('POST'::pg_catalog.text, '/'::pg_catalog.text, '{"a": 1.0}'::bytea) OPERATOR(pg_catalog.=)
  sha256('POST' OPERATOR(pg_catalog.||) E'\n/\n{"a":1}'::bytea) AS fingerprint;
SELECT public.idempotency_canonical_json('{"b": 1, "a": 2}');
BEGIN;
SELECT outcome FROM public.idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
SELECT public.idempotency_complete(:principal, :key, 204) IS NULL AS completed;
COMMIT;
SELECT outcome, response_status FROM public.idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
SELECT outcome FROM public.idempotency_begin(:principal, :key, 'orders.create', sha256('y'));
SELECT outcome FROM public.idempotency_begin_request(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c701', 'orders.create', 'POST', '/');
SELECT public.idempotency_save_final(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c702', 'orders.create', sha256('x'), 404, '{"code": "not_found"}',
  ttl => '1 second', at => '2020-01-01 00:00+00');
SELECT in_progress, completed, expired, table_bytes IS NOT NULL AS table_size, index_bytes IS NOT NULL AS index_size, estimated
FROM public.idempotency_stats();
SELECT key FROM public.idempotency_waiting;
CALL public.idempotency_cleanup();
SELECT in_progress, completed, expired FROM public.idempotency_stats();
-- An expired key is taken over.
BEGIN;
SELECT outcome FROM public.idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c702', 'orders.create', sha256('x'), at => '2020-01-01 00:00+00');
SELECT public.idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c702', 204) IS NULL AS completed;
COMMIT;
BEGIN;
SELECT outcome FROM public.idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c702', 'orders.create', sha256('y'));
ROLLBACK;
RESET search_path;
SELECT count(*) AS keys FROM public.idempotency_keys;
SELECT count(*) AS planted_keys FROM (SELECT FROM planted.idempotency_keys UNION ALL SELECT FROM pg_temp.idempotency_keys) AS keys;
SELECT DISTINCT what AS used FROM planted.used;

-- The plans of this session were made with the planted objects in sight; those of a new one are too.
\c
SET search_path = planted, public, pg_catalog;
SELECT outcome, response_status FROM public.idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
SELECT completed FROM public.idempotency_stats();
CALL public.idempotency_cleanup();
RESET search_path;
SELECT DISTINCT what AS used FROM planted.used;

-- A table or a function planted in the extension's own schema needs CREATE there, which the roles of the migration do not have.
SELECT has_schema_privilege('idempotency_app', 'public', 'CREATE') AS app_may_create;
DELETE FROM idempotency_keys;
SET client_min_messages = warning;
DROP SCHEMA planted CASCADE;
