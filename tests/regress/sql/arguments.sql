-- Bad input: each gets an SQLSTATE, a detail and a hint.
\set principal '''00000000-0000-7000-8000-000000000001'''
\set key '''01890a5d-ac96-7b7c-8f89-37c3d0a6c201'''
\set sha '''\\x0000000000000000000000000000000000000000000000000000000000000000'''

SELECT idempotency_begin(NULL, :key, 'orders.create', :sha);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, NULL, 'orders.create', :sha);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, NULL, :sha);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, 'orders.create', NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, '', :sha);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, 'orders.create', '\x00');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, 'orders.create', :sha, ttl => '0');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, 'orders.create', :sha, ttl => '-1 hour');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, 'orders.create', :sha, at => 'infinity');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, 'orders.create', :sha, at => '294276-12-31 23:59:59+00');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin(:principal, :key, 'orders.create', :sha, ttl => '300000 years');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin('00000000-0000-7000-8000-00000000dead', :key, 'orders.create', :sha);
\echo :LAST_ERROR_SQLSTATE

SELECT idempotency_begin_request(:principal, NULL, 'orders.create', 'POST', '/');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_begin_request(:principal, 'not-a-key', 'orders.create', 'POST', '/');
\echo :LAST_ERROR_SQLSTATE
-- Only a UUIDv7, bare or quoted: braces, no hyphens, urn, version 4, nil, a list and nothing are refused.
SELECT key, outcome FROM (VALUES
  ('01890a5d-ac96-7b7c-8f89-37c3d0a6c201'), (' 01890A5D-AC96-7B7C-8F89-37C3D0A6C201 '),
  ('"01890a5d-ac96-7b7c-8f89-37c3d0a6c201"')) AS given(key),
LATERAL (SELECT outcome FROM idempotency_begin_request(:principal, key, 'orders.create', 'POST', '/')) AS begun;
DELETE FROM idempotency_keys;
CREATE FUNCTION try_key(key text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM idempotency_begin_request('00000000-0000-7000-8000-000000000001', key, 'orders.create', 'POST', '/');
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END
$$;
SELECT key, try_key(key) FROM (VALUES
  ('{01890a5d-ac96-7b7c-8f89-37c3d0a6c201}'), ('01890a5dac967b7c8f8937c3d0a6c201'),
  ('urn:uuid:01890a5d-ac96-7b7c-8f89-37c3d0a6c201'), ('01890a5d-ac96-4b7c-8f89-37c3d0a6c201'),
  ('00000000-0000-0000-0000-000000000000'), (''), ('""'),
  ('01890a5d-ac96-7b7c-8f89-37c3d0a6c201, 01890a5d-ac96-7b7c-8f89-37c3d0a6c201'),
  ('"01890a5d-ac96-7b7c-8f89-37c3d0a6c201";a=1'), ('01890a5d-ac96-7b7c-cf89-37c3d0a6c201')) AS refused(key);
DROP FUNCTION try_key;

SELECT idempotency_complete(NULL, :key, 200);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_complete(:principal, :key, NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_complete(:principal, :key, 302);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_complete(:principal, :key, 70000);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_save_final(:principal, :key, 'orders.create', :sha, NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_save_final(:principal, :key, 'orders.create', :sha, 500);
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_save_final(:principal, :key, 'orders.create', :sha, 201);
\echo :LAST_ERROR_SQLSTATE

SELECT idempotency_fingerprint(NULL, '/');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_fingerprint('', '/');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_fingerprint('GET', 'orders');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_fingerprint('GET', '/orders?page=2');
\echo :LAST_ERROR_SQLSTATE

-- Settings are checked too; the words are the server's own.
\set VERBOSITY sqlstate
SET idempotency.key_ttl = '0';
SET idempotency.cleanup_batch_size = 0;
SET idempotency.wait_timeout = -2;
SET idempotency.no_such_setting = 1;
\set VERBOSITY default
SHOW idempotency.key_ttl;
SHOW idempotency.cleanup_interval;
SHOW idempotency.cleanup_batch_size;
SHOW idempotency.wait_timeout;
