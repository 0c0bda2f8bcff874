-- A transaction that started a key and reaches COMMIT without idempotency_complete does not commit.
CREATE FUNCTION start(key uuid) RETURNS text LANGUAGE sql AS $$
  SELECT outcome FROM idempotency_begin('00000000-0000-7000-8000-000000000001', key, 'orders.create', sha256('x'));
$$;
CREATE FUNCTION finish(key uuid) RETURNS boolean LANGUAGE sql AS $$
  SELECT idempotency_complete('00000000-0000-7000-8000-000000000001', key, 204) IS NULL;
$$;
\set key '''01890a5d-ac96-7b7c-8f89-37c3d0a6c401'''
\set key2 '''01890a5d-ac96-7b7c-8f89-37c3d0a6c402'''
BEGIN;
SELECT start(:key);
COMMIT;
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) AS keys FROM idempotency_keys;
-- Outside a transaction block as well.
SELECT start(:key);
\echo :LAST_ERROR_SQLSTATE
-- One of two.
BEGIN;
SELECT start(:key), start(:key2), finish(:key2);
COMMIT;
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) AS keys FROM idempotency_keys;

-- Started in a savepoint that is rolled back: nothing is left in progress.
BEGIN;
SAVEPOINT s;
SELECT start(:key);
ROLLBACK TO SAVEPOINT s;
COMMIT;
-- Started in a savepoint that is released: it is.
BEGIN;
SAVEPOINT s;
SAVEPOINT t;
SELECT start(:key);
RELEASE SAVEPOINT t;
RELEASE SAVEPOINT s;
COMMIT;
\echo :LAST_ERROR_SQLSTATE
-- Started and released inside a savepoint that is then rolled back.
BEGIN;
SAVEPOINT s;
SAVEPOINT t;
SELECT start(:key);
RELEASE SAVEPOINT t;
ROLLBACK TO SAVEPOINT s;
COMMIT;
-- Completed in a savepoint that is rolled back: in progress again.
BEGIN;
SELECT start(:key);
SAVEPOINT s;
SELECT finish(:key);
ROLLBACK TO SAVEPOINT s;
COMMIT;
\echo :LAST_ERROR_SQLSTATE
-- ... and completed once more.
BEGIN;
SELECT start(:key);
SAVEPOINT s;
SELECT finish(:key);
ROLLBACK TO SAVEPOINT s;
SELECT finish(:key);
COMMIT;
SELECT start(:key);
DELETE FROM idempotency_keys;

-- PL/pgSQL exception blocks are savepoints too.
DO $$
BEGIN
  BEGIN
    PERFORM start('01890a5d-ac96-7b7c-8f89-37c3d0a6c401');
    PERFORM 1 / 0;
  EXCEPTION WHEN division_by_zero THEN
    NULL;
  END;
END
$$;
DO $$
BEGIN
  BEGIN
    PERFORM start('01890a5d-ac96-7b7c-8f89-37c3d0a6c401');
  EXCEPTION WHEN division_by_zero THEN
    NULL;
  END;
END
$$;
\echo :LAST_ERROR_SQLSTATE

-- A hundred keys in one transaction.
BEGIN;
SELECT count(*) FILTER (WHERE start(key) = 'started' AND finish(key)) AS completed
FROM (SELECT ('01890a5d-ac96-7b7c-8f89-' || lpad(n::text, 12, '0'))::uuid AS key FROM generate_series(1, 100) AS n) AS many;
COMMIT;
SELECT count(*) AS keys FROM idempotency_keys;
DELETE FROM idempotency_keys;

-- Two-phase commit: the guard stands before PREPARE.
BEGIN;
SELECT start(:key);
PREPARE TRANSACTION 'guarded';
\echo :LAST_ERROR_SQLSTATE

-- The off switch.
SHOW idempotency.require_complete;
SET idempotency.require_complete = off;
BEGIN;
SELECT start(:key);
COMMIT;
RESET idempotency.require_complete;
SELECT state FROM idempotency_keys;
SELECT start(:key);
DELETE FROM idempotency_keys;
DROP FUNCTION start, finish;
