-- Canonical JSON and the fingerprint in the server.
SELECT idempotency_canonical_json(E'{ "b" : [ 1.0, 1e0, 10e-1, -0, 1E21, 5e-324 ], "a" : "\\u0041\\n\\/" }');
SELECT idempotency_canonical_json('"€"') = '"€"' AS kept;
SELECT idempotency_canonical_json(NULL) IS NULL AS strict;
SELECT idempotency_canonical_json('{"a": 1, "\u0061": 2}');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_canonical_json('{"a": 1} x');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_canonical_json('"\ud800"');
\echo :LAST_ERROR_SQLSTATE
SELECT idempotency_canonical_json('1e400');
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
SELECT idempotency_canonical_json(repeat('[', 100000));
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY default

-- The definition: SHA-256 over METHOD LF path LF canonical body.
SELECT idempotency_fingerprint('post', '/api/v1/orders', convert_to('{"b":1.0,"a":"\u0041"}', 'UTF8')) =
       sha256(convert_to(E'POST\n/api/v1/orders\n{"a":"A","b":1}', 'UTF8')) AS canonical;
SELECT idempotency_fingerprint('POST', '/a', convert_to('{"a":1,"\u0061":2}', 'UTF8')) =
       sha256(convert_to(E'POST\n/a\n{"a":1,"\\u0061":2}', 'UTF8')) AS raw_bytes;
SELECT idempotency_fingerprint('POST', '/a', '\xff00'::bytea) = sha256(convert_to(E'POST\n/a\n', 'UTF8') || '\xff00'::bytea) AS raw_bytes;
SELECT idempotency_fingerprint('POST', '/a') = sha256(E'POST\n/a\n') AS no_body,
       idempotency_fingerprint('POST', '/a', '') = idempotency_fingerprint('POST', '/a', NULL) AS empty_is_none;
SELECT provolatile, proparallel, proisstrict FROM pg_proc WHERE proname = 'idempotency_fingerprint';

-- A long document stops for a cancelled query.
SET statement_timeout = '50ms';
SELECT length(idempotency_canonical_json('[' || repeat('[1e-7,"abcdefgh"],', 6000000) || '0]'));
\echo :LAST_ERROR_SQLSTATE
RESET statement_timeout;
