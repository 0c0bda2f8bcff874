-- Row-level security, when an operator turns it on, holds for every function: they run with the caller's rights.
\set principal '''00000000-0000-7000-8000-000000000001'''
\set other_principal '''00000000-0000-7000-8000-000000000002'''
\set key '''01890a5d-ac96-7b7c-8f89-37c3d0a6c601'''
SET client_min_messages = warning;
CREATE ROLE regress_app IN ROLE idempotency_app;
CREATE ROLE regress_worker IN ROLE idempotency_worker;
RESET client_min_messages;
-- The other principal has an answer that nobody else may see.
BEGIN;
SELECT outcome FROM idempotency_begin(:other_principal, :key, 'orders.create', sha256('x'));
SELECT idempotency_complete(:other_principal, :key, 201, '{"secret": true}');
COMMIT;

ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_keys ON idempotency_keys TO idempotency_app USING (principal_id = current_setting('app.principal', true)::uuid);

SET ROLE regress_app;
SET app.principal = :principal;
-- One's own key works as ever, in the session that has made its plans already.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
SELECT idempotency_complete(:principal, :key, 201, '{"id": 1}');
COMMIT;
SELECT outcome, response_body FROM idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
-- Another's key: no answer, no claim, no final error.
SELECT * FROM idempotency_begin(:other_principal, :key, 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM idempotency_begin(:other_principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c602', 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_save_final(:other_principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c603', 'orders.create', sha256('x'), 404);
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) AS visible FROM idempotency_keys;
-- The same session acts for the other principal now: the plans follow.
SET app.principal = :other_principal;
SELECT outcome, response_body FROM idempotency_begin(:other_principal, :key, 'orders.create', sha256('x'));
SELECT * FROM idempotency_begin(:principal, :key, 'orders.create', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- A policy that hides the stored row and allows the new one: told, not looped over.
ALTER POLICY own_keys ON idempotency_keys USING (action = 'orders.delete');
SET ROLE regress_app;
SELECT * FROM idempotency_begin(:principal, :key, 'orders.delete', sha256('x'));
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- The worker sees nothing, and cleans nothing, until a policy lets it.
UPDATE idempotency_keys SET expires_at = '2020-01-01 00:00+00';
SET ROLE regress_worker;
SELECT completed, expired FROM idempotency_stats();
CALL idempotency_cleanup();
RESET ROLE;
CREATE POLICY clean_all ON idempotency_keys TO idempotency_worker USING (true);
SET ROLE regress_worker;
SELECT completed, expired FROM idempotency_stats();
CALL idempotency_cleanup();
RESET ROLE;
SELECT count(*) AS left_over FROM idempotency_keys;

DROP POLICY own_keys ON idempotency_keys;
DROP POLICY clean_all ON idempotency_keys;
ALTER TABLE idempotency_keys DISABLE ROW LEVEL SECURITY;
DROP ROLE regress_app, regress_worker;
