-- The table is found in the extension's schema, whatever the caller's search_path; a missing or another table is told apart.
\set principal '''00000000-0000-7000-8000-000000000001'''
\set key '''01890a5d-ac96-7b7c-8f89-37c3d0a6c301'''
CREATE SCHEMA planted;
CREATE TABLE planted.idempotency_keys (LIKE idempotency_keys);
CREATE FUNCTION planted.never(uuid, uuid) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR planted.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = planted.never);
SET search_path = planted, public, pg_catalog;
BEGIN;
SELECT outcome FROM public.idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
SELECT public.idempotency_complete(:principal, :key, 204) IS NULL AS completed;
COMMIT;
SELECT outcome FROM public.idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
SELECT count(*) AS planted_rows FROM planted.idempotency_keys;
SET search_path = '';
SELECT outcome FROM public.idempotency_begin(:principal, :key, 'orders.create', public.idempotency_fingerprint('GET', '/'));
RESET search_path;
DROP OPERATOR planted.= (uuid, uuid);
DROP SCHEMA planted CASCADE;

-- Missing.
ALTER TABLE idempotency_keys RENAME TO kept;
SELECT idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
CALL idempotency_cleanup();
\echo :LAST_ERROR_SQLSTATE
-- Not the expected one.
CREATE TABLE idempotency_keys (principal_id uuid, key uuid);
SELECT idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
DROP TABLE idempotency_keys;
CREATE TABLE idempotency_keys (LIKE kept INCLUDING DEFAULTS);
SELECT idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
DROP TABLE idempotency_keys;
ALTER TABLE kept RENAME TO idempotency_keys;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', sha256('x'));

-- A trigger that swallows rows ends in an error, not in an endless loop.
CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER swallow BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION swallow();
SELECT idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c302', 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER swallow ON idempotency_keys;
DROP FUNCTION swallow;

-- A trigger's own error keeps its SQLSTATE.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '55P03'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c302', 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER refuse ON idempotency_keys;
DROP FUNCTION refuse;

-- The schema may be renamed in the middle of a session.
DELETE FROM idempotency_keys;
ALTER SCHEMA public RENAME TO renamed;
SET search_path = renamed;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
DELETE FROM idempotency_keys;
ALTER SCHEMA renamed RENAME TO public;
RESET search_path;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
DELETE FROM idempotency_keys;
