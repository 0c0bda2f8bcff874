-- idempotency_stats: what is in the table, counted while it is small, estimated when it is large.
\set principal '''00000000-0000-7000-8000-000000000001'''
SELECT in_progress, completed, expired, earliest_expiry, table_bytes >= 0 AS table_size, index_bytes > 0 AS index_size, estimated
FROM idempotency_stats();
CREATE FUNCTION insert_keys(count integer, state text, life interval) RETURNS void LANGUAGE sql AS $$
  INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, state, expires_at)
  SELECT '00000000-0000-7000-8000-000000000001', gen_random_uuid(), 'orders.create', sha256('x'), state, now() + life
  FROM generate_series(1, count) AS n;
$$;
SELECT insert_keys(3, 'completed', interval '1 hour'), insert_keys(2, 'in_progress', interval '2 hours'),
       insert_keys(4, 'completed', interval '-20 years');
SELECT in_progress, completed, expired, earliest_expiry < now() - interval '19 years' AS earliest, table_bytes > 0 AS table_size,
       index_bytes > 0 AS index_size, estimated
FROM idempotency_stats();
DELETE FROM idempotency_keys;

-- Large: from the statistics, and the expired ones from the index as long as they are few.
SELECT insert_keys(60000, 'completed', interval '1 hour');
SELECT insert_keys(6000, 'in_progress', interval '1 hour');
SELECT insert_keys(50, 'completed', interval '-20 years');
ANALYZE idempotency_keys;
SELECT in_progress BETWEEN 4000 AND 8000 AS in_progress, completed BETWEEN 50000 AND 70000 AS completed, expired, estimated
FROM idempotency_stats();
SELECT insert_keys(20000, 'completed', interval '-20 years');
ANALYZE idempotency_keys;
SELECT expired BETWEEN 16000 AND 24000 AS many_expired, estimated FROM idempotency_stats();
-- Also when every key has a time of its own.
UPDATE idempotency_keys SET expires_at = now() + (random() - 0.5) * interval '1 day' WHERE expires_at > now();
ANALYZE idempotency_keys;
SELECT expired BETWEEN 40000 AND 65000 AS many_expired FROM idempotency_stats();
TRUNCATE idempotency_keys;
DROP FUNCTION insert_keys;

-- The table must be there.
ALTER TABLE idempotency_keys RENAME TO kept;
SELECT * FROM idempotency_stats();
\echo :LAST_ERROR_SQLSTATE
ALTER TABLE kept RENAME TO idempotency_keys;
