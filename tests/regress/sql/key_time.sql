-- idempotency.clock_skew: the time in a new key is checked against its life.
\set principal '''00000000-0000-7000-8000-000000000001'''
\set sha '''\\x0000000000000000000000000000000000000000000000000000000000000000'''
-- The key is of 2023-07-01 00:00:00 UTC.
\set key '''01890ebf-d400-7b7c-8f89-37c3d0a6c001'''
SET timezone = 'UTC';
-- Each statement is a transaction here, and some start a key and leave it.
SET idempotency.require_complete = off;

SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha);
SHOW idempotency.clock_skew;
DELETE FROM idempotency_keys WHERE key = :key;

SET idempotency.clock_skew = '5min';
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha);
\echo :LAST_ERROR_SQLSTATE
SELECT outcome FROM idempotency_begin_request(:principal, :key, 'orders.create', 'POST', '/orders');
\echo :LAST_ERROR_SQLSTATE
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-06-30 00:00:00');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM idempotency_keys WHERE key = :key;

-- Up to the allowance on both sides, and one second beyond.
\set VERBOSITY sqlstate
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-06-30 23:54:59');
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-06-30 23:55:00');
DELETE FROM idempotency_keys WHERE key = :key;
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-07-02 00:05:01');
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-07-02 00:05:00');

-- Now there is a row: its own life counts, not the time in the key.
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-07-02 12:00:00');
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-06-01 00:00:00');
-- An expired row counts as absent; what is refused leaves it as it was.
SELECT outcome FROM idempotency_begin(:principal, :key, 'orders.create', :sha, '24 hours', '2023-07-04 00:00:00');
SELECT created_at FROM idempotency_keys WHERE key = :key;
DELETE FROM idempotency_keys WHERE key = :key;

-- A key of another version has no time in it.
SELECT outcome FROM idempotency_begin(:principal, '9b0c2d6a-1111-4222-8333-444455556666', 'orders.create', :sha);
DELETE FROM idempotency_keys WHERE key = '9b0c2d6a-1111-4222-8333-444455556666';
SET idempotency.clock_skew = -2;
\set VERBOSITY default
RESET idempotency.clock_skew;
RESET idempotency.require_complete;
