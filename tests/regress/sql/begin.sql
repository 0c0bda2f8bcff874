-- idempotency_begin: each outcome, one transaction after another.
\set principal '''00000000-0000-7000-8000-000000000001'''
\set other_principal '''00000000-0000-7000-8000-000000000002'''
\set key '''01890a5d-ac96-7b7c-8f89-37c3d0a6c001'''
SELECT idempotency_fingerprint('POST', '/api/v1/orders', '{"sku": "A-1", "quantity": 2}') AS sha \gset
SELECT idempotency_fingerprint('POST', '/api/v1/orders', '{"sku": "A-1", "quantity": 3}') AS other_sha \gset

-- The first call starts the key and completes it in the same transaction.
BEGIN;
SELECT outcome, response_status, response_body, resource_id, expires_at > now() AS expires_later
FROM idempotency_begin(principal_id => :principal, key => :key, action => 'orders.create', request_sha256 => :'sha');
SELECT idempotency_complete(principal_id => :principal, key => :key, response_status => 201,
  response_body => '{"id": "01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa", "version": 1}',
  resource_id => '01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa');
COMMIT;

-- A repeat gets the stored answer; so does every further one.
SELECT outcome, response_status, response_body, resource_id, expires_at > now() AS expires_later
FROM idempotency_begin(:principal, :key, 'orders.create', :'sha');
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :'sha');

-- Another request under the same key gets nothing but the word.
SELECT * FROM idempotency_begin(:principal, :key, 'orders.create', :'other_sha');

-- The key is valid per principal.
BEGIN;
SELECT outcome FROM idempotency_begin(:other_principal, :key, 'orders.create', :'sha');
ROLLBACK;

-- A rolled back first call leaves nothing, the next one starts.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c002', 'orders.create', :'sha');
ROLLBACK;
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c002', 'orders.create', :'sha');
ROLLBACK;

-- Twice in one transaction: in progress, and the first one may still complete.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c003', 'orders.create', :'sha');
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c003', 'orders.create', :'sha');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c003', 204) IS NULL AS no_body;
SELECT outcome, response_status, response_body FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c003', 'orders.create', :'sha');
COMMIT;

-- A rollback to a savepoint gives the key back.
BEGIN;
SAVEPOINT before;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c004', 'orders.create', :'sha');
ROLLBACK TO SAVEPOINT before;
SELECT count(*) AS key_locks FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 18763;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c004', 'orders.create', :'sha');
ROLLBACK;

-- The lock of a started key is held until the end, that of a replay is not.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :'sha');
SELECT count(*) AS key_locks FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 18763;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c004', 'orders.create', :'sha');
SELECT count(*) AS key_locks FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 18763;
ROLLBACK;
SELECT count(*) AS key_locks FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 18763;

-- A key costs one transaction id and no subtransaction.
BEGIN;
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_transaction_id;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c005', 'orders.create', :'sha');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c005', 201);
SELECT xmin::text::bigint = pg_current_xact_id()::text::bigint % 4294967296 AS written_by_this_transaction
FROM idempotency_keys WHERE key = '01890a5d-ac96-7b7c-8f89-37c3d0a6c005';
ROLLBACK;

-- The life of a key: at plus ttl; an expired row counts as absent, in progress or completed, and is replaced.
BEGIN;
SELECT outcome, expires_at = '2030-01-01 01:00+00' AS expires_in_an_hour
FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c006', 'orders.create', :'sha',
  ttl => '1 hour', at => '2030-01-01 00:00+00');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c006', 200, '{"run": 1}');
COMMIT;
SELECT outcome, response_body
FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c006', 'orders.create', :'sha', at => '2030-01-01 00:59:59+00');
BEGIN;
SELECT outcome, response_body
FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c006', 'orders.create', :'other_sha', at => '2030-01-01 01:00+00');
SELECT idempotency_complete(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c006', 200, '{"run": 2}');
COMMIT;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c006', 'orders.create', :'sha', at => '2030-01-01 01:00:01+00');
SELECT created_at = '2030-01-01 01:00+00' AS created_at_the_second_run, response_body
FROM idempotency_keys WHERE key = '01890a5d-ac96-7b7c-8f89-37c3d0a6c006';
INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)
VALUES (:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c007', 'orders.create', :'sha', now() - interval '1 second'),
       (:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c008', 'orders.create', :'sha', now() + interval '1 hour');
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c007', 'orders.create', :'sha');
SELECT outcome FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c008', 'orders.create', :'sha');
ROLLBACK;

-- The default life is a setting.
BEGIN;
SET LOCAL idempotency.key_ttl = '10min';
SELECT expires_at = '2030-01-01 00:10+00' AS expires_in_ten_minutes
FROM idempotency_begin(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c009', 'orders.create', :'sha', at => '2030-01-01 00:00+00');
ROLLBACK;

-- begin_request: the key as the header carries it, the fingerprint computed in the server.
SELECT outcome, response_status, response_body
FROM idempotency_begin_request(principal_id => :principal, key => '"01890A5D-AC96-7B7C-8F89-37C3D0A6C001"', action => 'orders.create',
  method => 'post', path => '/api/v1/orders', body => convert_to('{"quantity": 2.0, "sku": "\u0041-1"}', 'UTF8'));
SELECT outcome
FROM idempotency_begin_request(:principal, '01890a5d-ac96-7b7c-8f89-37c3d0a6c001', 'orders.create', 'POST', '/api/v1/orders', '{"sku": "A-1"}');

-- The same works inside PL/pgSQL, with its exception blocks.
DO $$
DECLARE
  claim record;
BEGIN
  BEGIN
    SELECT * INTO claim FROM idempotency_begin('00000000-0000-7000-8000-000000000001',
      '01890a5d-ac96-7b7c-8f89-37c3d0a6c00a', 'orders.create', sha256('x'));
    RAISE NOTICE 'in the block: %', claim.outcome;
    RAISE EXCEPTION 'undo';
  EXCEPTION WHEN raise_exception THEN
    NULL;
  END;
  claim := idempotency_begin('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c00a', 'orders.create', sha256('x'));
  RAISE NOTICE 'after it: %', claim.outcome;
  PERFORM idempotency_complete('00000000-0000-7000-8000-000000000001', '01890a5d-ac96-7b7c-8f89-37c3d0a6c00a', 200);
END
$$;
SELECT state, response_status FROM idempotency_keys WHERE key = '01890a5d-ac96-7b7c-8f89-37c3d0a6c00a';
DELETE FROM idempotency_keys;
