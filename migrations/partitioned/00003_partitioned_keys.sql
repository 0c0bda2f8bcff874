-- Opt-in: idempotency_keys partitioned by the time in its keys, so that expired keys go with a partition instead of row by row. The rows stay
-- where they are: the table becomes the first partition, for keys up to the end of tomorrow (UTC). Run it as the owner of the table, then
-- SELECT idempotency_schedule_cleanup() or CALL idempotency_maintain_partitions() at least once a day. Policies, triggers, indexes and grants of
-- your own must be made again on the new table.

-- +goose Up
ALTER EXTENSION pg_idempotency UPDATE;

LOCK TABLE idempotency_keys IN ACCESS EXCLUSIVE MODE;

ALTER TABLE idempotency_keys RENAME TO idempotency_keys_first;
ALTER INDEX idempotency_keys_pkey RENAME TO idempotency_keys_first_pkey;
ALTER INDEX idempotency_keys_expires_at_idx RENAME TO idempotency_keys_first_expires_at_idx;

CREATE TABLE idempotency_keys (
  principal_id    uuid        NOT NULL CONSTRAINT idempotency_keys_principal_id_fkey REFERENCES principals (id) ON DELETE CASCADE,
  key             uuid        NOT NULL,
  action          text        NOT NULL,
  request_sha256  bytea       NOT NULL,
  state           text        NOT NULL DEFAULT 'in_progress' CONSTRAINT idempotency_keys_state_check CHECK (state IN ('in_progress', 'completed')),
  response_status smallint,
  response_body   jsonb,
  resource_id     uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  PRIMARY KEY (principal_id, key)
) PARTITION BY RANGE (key);

CREATE INDEX ON idempotency_keys (expires_at);

COMMENT ON TABLE idempotency_keys IS 'Idempotency keys with their final answers; written by the functions of pg_idempotency, emptied by idempotency_maintain_partitions.';

-- Keys with odd clocks. The end of the first partition is the least key of a time: 48 bits of milliseconds, then zeros.
CREATE TABLE idempotency_keys_default PARTITION OF idempotency_keys DEFAULT;

-- +goose StatementBegin
DO $$
DECLARE
  midnight timestamptz := (date_trunc('day', now() AT TIME ZONE 'UTC') + interval '2 days') AT TIME ZONE 'UTC';
  until    uuid        := rpad(lpad(to_hex((extract(epoch FROM midnight) * 1000)::bigint), 12, '0'), 32, '0');
BEGIN
  WITH moved AS (DELETE FROM idempotency_keys_first WHERE key >= until RETURNING *)
  INSERT INTO idempotency_keys_default SELECT * FROM moved;
  EXECUTE format('ALTER TABLE idempotency_keys ATTACH PARTITION idempotency_keys_first FOR VALUES FROM (MINVALUE) TO (%L)', until);
END
$$;
-- +goose StatementEnd

REVOKE ALL ON idempotency_keys_first FROM idempotency_app, idempotency_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO idempotency_app;
GRANT SELECT, DELETE ON idempotency_keys TO idempotency_worker;

-- +goose Down
ALTER TABLE idempotency_keys RENAME TO idempotency_keys_partitioned;
ALTER INDEX idempotency_keys_pkey RENAME TO idempotency_keys_partitioned_pkey;
ALTER INDEX idempotency_keys_expires_at_idx RENAME TO idempotency_keys_partitioned_expires_at_idx;

CREATE TABLE idempotency_keys (
  principal_id    uuid        NOT NULL CONSTRAINT idempotency_keys_principal_id_fkey REFERENCES principals (id) ON DELETE CASCADE,
  key             uuid        NOT NULL,
  action          text        NOT NULL,
  request_sha256  bytea       NOT NULL,
  state           text        NOT NULL DEFAULT 'in_progress' CONSTRAINT idempotency_keys_state_check CHECK (state IN ('in_progress', 'completed')),
  response_status smallint,
  response_body   jsonb,
  resource_id     uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  PRIMARY KEY (principal_id, key)
);

INSERT INTO idempotency_keys SELECT * FROM idempotency_keys_partitioned;
DROP TABLE idempotency_keys_partitioned;

CREATE INDEX ON idempotency_keys (expires_at);

COMMENT ON TABLE idempotency_keys IS 'Idempotency keys with their final answers; written by the functions of pg_idempotency, emptied by idempotency_cleanup.';

GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO idempotency_app;
GRANT SELECT, DELETE ON idempotency_keys TO idempotency_worker;
