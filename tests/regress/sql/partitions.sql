-- The partitioned table: converted with its rows, maintained by partitions, and converted back.
\set principal '''00000000-0000-7000-8000-000000000001'''
\getenv source PG_ABS_SRCDIR
CREATE FUNCTION key_at(at timestamptz, tail integer) RETURNS uuid LANGUAGE sql AS $$
  SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(tail), 15, '0'))::uuid
$$;
CREATE FUNCTION insert_key(key uuid, expires_at timestamptz, state text DEFAULT 'in_progress') RETURNS void LANGUAGE sql AS $$
  INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at, state)
  VALUES ('00000000-0000-7000-8000-000000000001', key, 'orders.create', sha256('x'), expires_at, state)
$$;
DELETE FROM idempotency_keys;

-- A plain table has nothing to maintain.
CALL idempotency_maintain_partitions();
\echo :LAST_ERROR_SQLSTATE

-- Converted with rows in it: a live one, an expired one, and one whose clock is far ahead.
BEGIN;
SELECT outcome FROM idempotency_begin(:principal, key_at(now(), 1), 'orders.create', sha256('x'));
SELECT idempotency_complete(:principal, key_at(now(), 1), 201, '{"id": 1}');
SELECT key_at(now(), 1) AS stored \gset
COMMIT;
SELECT insert_key(key_at(now() - interval '2 days', 2), now() - interval '1 day');
SELECT insert_key(key_at(now() + interval '9 days', 3), now() + interval '1 day');
SELECT pg_relation_filenode('idempotency_keys') AS filenode \gset
SET client_min_messages = warning;
\set migration `sed '/^-- +goose Down/,$d' :'source'/../../migrations/partitioned/00003_partitioned_keys.sql`
BEGIN;
:migration
COMMIT;
CREATE VIEW rows_by_partition AS
SELECT regexp_replace(tableoid::regclass::text, '[0-9]{14}', 'TIME') AS partition, count(*) FROM idempotency_keys GROUP BY 1 ORDER BY 1;
RESET client_min_messages;
SELECT * FROM rows_by_partition;
-- No row was rewritten, the answer is replayed, and the key exists once.
SELECT pg_relation_filenode('idempotency_keys_first') = :filenode AS rows_stayed;
SELECT outcome, response_status, response_body FROM idempotency_begin(:principal, :'stored', 'orders.create', sha256('x'));
INSERT INTO idempotency_keys SELECT * FROM idempotency_keys WHERE key = :'stored' ON CONFLICT (principal_id, key) DO NOTHING;
-- The table is the expected one: columns, constraints, and the same of each partition.
SELECT relid::regclass AS table, string_agg(conname, ' ' ORDER BY conname) FILTER (WHERE contype <> 'n') AS constraints
FROM pg_partition_tree('idempotency_keys') JOIN pg_constraint ON conrelid = relid GROUP BY relid ORDER BY relid::regclass::text;

-- Maintained: two partitions ahead of the last one when its end is near, the default partition cleaned row by row.
CALL idempotency_maintain_partitions();
SET idempotency.partition_interval = '1d';
CALL idempotency_maintain_partitions();
CALL idempotency_maintain_partitions();
SET idempotency.require_complete = off;
-- A key from tomorrow's clock has a partition of its own; one far ahead is in the default partition, one from long ago in the first.
SELECT insert_key(key_at(date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '50 hours', 4), now() + interval '1 day');
SELECT outcome FROM idempotency_begin(:principal, key_at(now() + interval '30 days', 5), 'orders.create', sha256('x'));
SELECT outcome FROM idempotency_begin(:principal, '00000000-0000-7000-8000-000000000009', 'orders.create', sha256('x'), at => now() - interval '2 days');
RESET idempotency.require_complete;
SELECT * FROM rows_by_partition;
-- Those in the default partition go row by row.
UPDATE idempotency_keys SET expires_at = now() - interval '1 hour' WHERE key >= key_at(now() + interval '8 days', 0);
CALL idempotency_maintain_partitions();
SELECT * FROM rows_by_partition;

-- A partition goes when its time is over and its last key has expired; not before.
CREATE TABLE old (LIKE idempotency_keys INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
ALTER TABLE idempotency_keys DETACH PARTITION idempotency_keys_first;
SELECT 'ALTER TABLE idempotency_keys ATTACH PARTITION old FOR VALUES FROM (MINVALUE) TO (' || quote_literal(key_at(now() - interval '1 hour', 0)) || ')' AS attach \gset
:attach;
SELECT insert_key(key_at(now() - interval '3 hours', 7), now() - interval '1 hour'), insert_key(key_at(now() - interval '3 hours', 8), now() + interval '1 minute');
CALL idempotency_maintain_partitions();
SELECT count(*) AS kept FROM old;
UPDATE idempotency_keys SET expires_at = now() - interval '1 minute' WHERE key = key_at(now() - interval '3 hours', 8);
UPDATE old SET expires_at = now() - interval '1 minute';
CALL idempotency_maintain_partitions();
SELECT to_regclass('old') IS NULL AS dropped;

-- Keys that came to the default partition while there was no other are moved to the new one.
SELECT 'DROP TABLE ' || string_agg(relid::regclass::text, ', ') AS drop_all FROM pg_partition_tree('idempotency_keys') WHERE relid::regclass::text ~ '[0-9]{14}$' \gset
:drop_all;
SELECT insert_key(key_at(now(), 10), now() + interval '1 day');
SELECT * FROM rows_by_partition;
CALL idempotency_maintain_partitions();
SELECT * FROM rows_by_partition;
SELECT outcome FROM idempotency_begin(:principal, (SELECT key FROM idempotency_keys), 'orders.create', sha256('y'), at => now() - interval '1 day');

-- Deleting the principal removes its keys from every partition.
BEGIN;
DELETE FROM principals WHERE id = :principal;
SELECT count(*) FROM idempotency_keys;
ROLLBACK;

-- Only outside a transaction, and only for the owner of the table.
BEGIN;
CALL idempotency_maintain_partitions();
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
GRANT EXECUTE ON PROCEDURE idempotency_maintain_partitions() TO idempotency_worker;
SET SESSION AUTHORIZATION idempotency_worker;
CALL idempotency_maintain_partitions();
\echo :LAST_ERROR_SQLSTATE
CALL idempotency_cleanup();
RESET SESSION AUTHORIZATION;
REVOKE EXECUTE ON PROCEDURE idempotency_maintain_partitions() FROM idempotency_worker;
-- What it makes belongs to the owner of the table, whoever runs it.
CREATE ROLE keys_owner;
GRANT ALL ON SCHEMA public TO keys_owner;
ALTER TABLE idempotency_keys OWNER TO keys_owner;
SET idempotency.partition_interval = '2d';
SET client_min_messages = warning;  -- how many depends on the day
CALL idempotency_maintain_partitions();
RESET client_min_messages;
SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_partition_tree('idempotency_keys') JOIN pg_class ON oid = relid
WHERE relid::regclass::text = (SELECT max(relid::regclass::text) FROM pg_partition_tree('idempotency_keys') WHERE relid::regclass::text ~ '[0-9]{14}$');
ALTER TABLE idempotency_keys OWNER TO CURRENT_USER;
REVOKE ALL ON SCHEMA public FROM keys_owner;
RESET idempotency.partition_interval;
-- The statistics count every partition.
SELECT in_progress, completed, expired FROM idempotency_stats();

-- Converted back, with its rows.
DROP VIEW rows_by_partition;
DROP TABLE idempotency_keys_first;
SET client_min_messages = warning;
\set migration `sed '1,/^-- +goose Down/d' :'source'/../../migrations/partitioned/00003_partitioned_keys.sql`
BEGIN;
:migration
COMMIT;
RESET client_min_messages;
SELECT relkind, (SELECT count(*) FROM idempotency_keys) AS rows FROM pg_class WHERE oid = 'idempotency_keys'::regclass;
SELECT conname FROM pg_constraint WHERE conrelid = 'idempotency_keys'::regclass AND contype <> 'n' ORDER BY conname;
REASSIGN OWNED BY keys_owner TO CURRENT_USER;
DROP OWNED BY keys_owner;
DROP ROLE keys_owner;
DELETE FROM idempotency_keys;
DROP FUNCTION key_at, insert_key;
