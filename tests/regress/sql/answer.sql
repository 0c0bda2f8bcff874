-- idempotency_complete and idempotency_save_final: what is stored, and what is refused.
\set principal '''00000000-0000-7000-8000-000000000001'''
\set key '''01890a5d-ac96-7b7c-8f89-37c3d0a6c101'''
SELECT idempotency_fingerprint('DELETE', '/api/v1/orders/1') AS sha \gset

-- The body comes back as stored: member order, white space and duplicates are those of jsonb, number spellings are kept.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.delete', :'sha');
SELECT idempotency_complete(:principal, :key, 200, '{"zeta": 1.0, "a":  [1e2, "\u0041"]}');
COMMIT;
SELECT response_body FROM idempotency_begin(:principal, :key, 'orders.delete', :'sha');

-- JSON null is a body, NULL is none.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c102', 'orders.delete', :'sha');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c102', 200, 'null') IS NULL AS no_body;
COMMIT;
SELECT response_body IS NULL AS no_body, response_body
FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c102', 'orders.delete', :'sha');

-- complete without begin, in another transaction, twice, or after a replay.
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c103', 200);
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.delete', :'sha');
SELECT idempotency_complete(:principal, :key, 200, '{"second": true}');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c104', 'orders.delete', :'sha');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c104', 204) IS NULL AS no_body;
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c104', 204);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)
VALUES (:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c105', 'orders.delete', :'sha', now() + interval '1 hour');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c105', 200);
\echo :LAST_ERROR_SQLSTATE

-- A keyed write in one flush: when begin says replay, complete fails and the effect between them never happened.
CREATE TABLE effects (note text);
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.delete', :'sha');
INSERT INTO effects VALUES ('second');
SELECT idempotency_complete(:principal, :key, 200);
COMMIT;
SELECT count(*) AS effects FROM effects;
DROP TABLE effects;

-- Only 2xx completes, only the listed errors are saved.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c106', 'orders.delete', :'sha');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c106', 404);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
CREATE FUNCTION try_complete(status integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idempotency_complete('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c106', status);
  RETURN 'completed';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
-- IK003: the status was not refused, the key was not begun.
SELECT min(status) FILTER (WHERE result = 'IK003') AS first_accepted, max(status) FILTER (WHERE result = 'IK003') AS last_accepted,
       count(*) FILTER (WHERE result = 'IK004') AS refused, count(*) AS tried
FROM generate_series(100, 599) AS status, LATERAL (SELECT try_complete(status) AS result) AS r;
DROP FUNCTION try_complete;
CREATE FUNCTION try_save_final(status integer) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idempotency_save_final('00000000-0000-7000-8000-000000000001',
    ('01890a5d-ac96-7b7c-8f89-37c3d0a6d' || status)::uuid, 'orders.delete', sha256('x'), status, '{"code": "x"}');
  RETURN 'saved';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
SELECT string_agg(status::text, ' ') FILTER (WHERE result = 'saved') AS saved,
       count(*) FILTER (WHERE result = 'IK004') AS refused, count(*) AS tried
FROM generate_series(100, 599) AS status, LATERAL (SELECT try_save_final(status) AS result) AS r;
DROP FUNCTION try_save_final;

-- A saved error is replayed; an answer that is there already stays.
SELECT idempotency_save_final(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c107', 'orders.delete', :'sha', 404, '{"b": 1, "a": 2}');
SELECT idempotency_save_final(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c107', 'orders.delete', :'sha', 409, '{"late": true}');
SELECT outcome, response_status, response_body, resource_id
FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c107', 'orders.delete', :'sha');
SELECT idempotency_save_final(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c108', 'orders.delete', :'sha', 410) IS NULL AS no_body;

-- An expired row does not stand in the way of a final error.
INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)
VALUES (:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c109', 'orders.delete', :'sha', now() - interval '1 second');
SELECT idempotency_save_final(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c109', 'orders.delete', :'sha', 404, '{"code": "not_found"}');
SELECT state, response_status, expires_at > now() AS renewed FROM idempotency_keys WHERE key = '01890a5d-ac96-7b7c-8f89-37c3d0a6c109';

-- In the transaction of the effect it is refused: the effect must be rolled back first.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c10a', 'orders.delete', :'sha');
SELECT idempotency_save_final(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c10a', 'orders.delete', :'sha', 404);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
BEGIN;
SAVEPOINT before;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c10a', 'orders.delete', :'sha');
ROLLBACK TO SAVEPOINT before;
SELECT idempotency_save_final(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c10a', 'orders.delete', :'sha', 404) IS NULL AS saved;
COMMIT;
SELECT outcome, response_status FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c10a', 'orders.delete', :'sha');
DELETE FROM idempotency_keys;
