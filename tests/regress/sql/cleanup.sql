-- CALL idempotency_cleanup: expired rows go in batches, each committed.
\set principal '''00000000-0000-7000-8000-000000000001'''
CREATE FUNCTION insert_keys(count integer, expires_at timestamptz) RETURNS void LANGUAGE sql AS $$
  INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)
  SELECT '00000000-0000-7000-8000-000000000001', gen_random_uuid(), 'orders.create', sha256('x'), expires_at + n * interval '1 microsecond'
  FROM generate_series(1, count) AS n;
$$;
SELECT insert_keys(25, now() - interval '1 hour'), insert_keys(5, now() + interval '1 hour');
-- Each batch is a transaction of its own.
CREATE TABLE deletions (transaction_id xid8);
CREATE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deletions VALUES (pg_current_xact_id());
  RETURN NULL;
END
$$;
CREATE TRIGGER note_deletion AFTER DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION note_deletion();
CALL idempotency_cleanup(batch_size => 10);
SELECT count(*) AS deleted FROM deletions GROUP BY transaction_id ORDER BY transaction_id;
SELECT count(*) AS left_over FROM idempotency_keys;
-- Again: harmless.
CALL idempotency_cleanup();
SELECT count(*) AS left_over FROM idempotency_keys;
DROP TRIGGER note_deletion ON idempotency_keys;

-- The oldest go first.
SELECT insert_keys(3, now() - interval '1 hour');
UPDATE idempotency_keys SET expires_at = now() - interval '2 hours', action = 'oldest'
WHERE key = (SELECT max(key::text)::uuid FROM idempotency_keys WHERE expires_at < now());
CREATE FUNCTION stop_after_one() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.action <> 'oldest' THEN
    RAISE EXCEPTION 'stopped';
  END IF;
  RETURN OLD;
END
$$;
CREATE TRIGGER stop_after_one BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION stop_after_one();
CALL idempotency_cleanup(1);
-- What was committed before the error stays deleted.
SELECT count(*) FILTER (WHERE action = 'oldest') AS oldest, count(*) FILTER (WHERE expires_at < now()) AS expired FROM idempotency_keys;
DROP TRIGGER stop_after_one ON idempotency_keys;
CALL idempotency_cleanup();
SELECT count(*) AS left_over FROM idempotency_keys;

-- The batch size may be a setting.
SELECT insert_keys(4, now() - interval '1 hour');
SET idempotency.cleanup_batch_size = 3;
CALL idempotency_cleanup();
RESET idempotency.cleanup_batch_size;
SELECT count(*) AS left_over FROM idempotency_keys;

-- A long one tells how far it is.
SELECT insert_keys(250, now() - interval '1 hour');
CALL idempotency_cleanup(1);

-- In a repeatable read session as well, and whatever lock_timeout is.
SELECT insert_keys(4, now() - interval '1 hour');
SET default_transaction_isolation = 'repeatable read';
SET lock_timeout = '1h';
CALL idempotency_cleanup(2);
SHOW lock_timeout;
RESET lock_timeout;
RESET default_transaction_isolation;

-- Not inside a transaction block or a function, and not with a batch of nothing.
BEGIN;
CALL idempotency_cleanup();
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
DO $$ BEGIN CALL idempotency_cleanup(); END $$;
CALL idempotency_cleanup(0);
\echo :LAST_ERROR_SQLSTATE

DELETE FROM idempotency_keys;
DROP TABLE deletions;
DROP FUNCTION insert_keys, note_deletion, stop_after_one;
