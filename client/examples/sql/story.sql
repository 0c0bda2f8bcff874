-- The story of the demo in psql: every outcome, and every way to end a keyed request. It needs nothing but the functions.
-- Run by tests/languages in a database with the tables of orders_server/schema.sql; story.out is what it prints.
\pset footer off
\set me '\'01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa\''
\set other '\'01890a5d-ac96-7b7c-8f89-37c3d0a6c0bb\''
\set key '\'01890a5d-ac96-7b7c-8f89-37c3d0a6c001\''
\set create '\'orders.create\', \'POST\', \'/api/v1/orders\''
\set order '\'{"sku":"A-1","quantity":2}\''

\echo The first call creates an order; key and order are committed together.
BEGIN;
SELECT outcome FROM idempotency_begin_request(:me, :key, :create, :order);
INSERT INTO orders (principal_id, sku, quantity) VALUES (:me, 'A-1', 2) RETURNING id AS made \gset
SELECT idempotency_complete(:me, :key, 201, '{"sku": "A-1", "version": 1}', :'made') AS answer;
COMMIT;

\echo The same call again, in another spelling of body and key: the stored answer. It has nothing to do, so it does nothing.
SELECT outcome, response_status, response_body, resource_id = :'made' AS same_order
FROM idempotency_begin_request(:me, '"01890A5D-AC96-7B7C-8F89-37C3D0A6C001"', :create, '{ "quantity": 2.0, "sku": "A-1" }');

\echo Another request under the same key is told so, and gets no answer of the first one.
SELECT outcome, response_body FROM idempotency_begin_request(:me, :key, :create, '{"sku":"A-1","quantity":3}');

\echo Another principal may use the same key. While its call runs, a repeat on another connection waits, at most lock_timeout.
BEGIN;
SELECT outcome FROM idempotency_begin_request(:other, :key, :create, :order);
\set repeat 'SELECT outcome FROM idempotency_begin_request(' :other ', ' :key ', ' :create ', ' :order ')'
\setenv REPEAT :repeat
\! PGOPTIONS='-c lock_timeout=100ms' psql --no-psqlrc --quiet --pset footer=off --command "$REPEAT"
\echo An error that will pass is not stored: the transaction is rolled back, and the next attempt runs.
ROLLBACK;
BEGIN;
SELECT outcome FROM idempotency_begin_request(:other, :key, :create, :order);
ROLLBACK;

\echo A final error is an answer too: what was written is rolled back, then the answer is stored by itself.
\set key '\'01890a5d-ac96-7b7c-8f89-37c3d0a6c002\''
\set delete '\'orders.delete\', \'DELETE\', \'/api/v1/orders/7\''
BEGIN;
SELECT outcome FROM idempotency_begin_request(:me, :key, :delete);
ROLLBACK;
SELECT idempotency_save_final(:me, :key, 'orders.delete', idempotency_fingerprint('DELETE', '/api/v1/orders/7'), 404, '{"code": "not_found"}') AS answer;
SELECT outcome, response_status, response_body FROM idempotency_begin_request(:me, :key, :delete);

\echo A one-time secret is in the first answer only: it is completed without a body. A server answers the replay with 409.
\set key '\'01890a5d-ac96-7b7c-8f89-37c3d0a6c003\''
\set token '\'tokens.create\', \'POST\', \'/api/v1/tokens\''
BEGIN;
SELECT outcome FROM idempotency_begin_request(:me, :key, :token);
SELECT idempotency_complete(:me, :key, 201) IS NULL AS nothing_stored;
COMMIT;
SELECT outcome, response_status, response_body IS NULL AS hidden FROM idempotency_begin_request(:me, :key, :token);

\echo What is wrong has a SQLSTATE: a key that is none, and a commit without complete.
SELECT outcome FROM idempotency_begin_request(:me, 'nope', :create, :order);
\echo :LAST_ERROR_SQLSTATE
BEGIN;
SELECT outcome FROM idempotency_begin_request(:me, '01890a5d-ac96-7b7c-8f89-37c3d0a6c004', :create, :order);
COMMIT;
\echo :LAST_ERROR_SQLSTATE

\echo One order, whatever was repeated, and three answers.
SELECT (SELECT count(*) FROM orders) AS orders, count(*) AS answers FROM idempotency_keys;
