-- The key store: the extension with its functions, the table, and two group roles for those who use it. The table is not a member of the extension, so
-- that dumps carry it like any other table.

-- +goose Up
CREATE EXTENSION IF NOT EXISTS pg_idempotency;

CREATE TABLE idempotency_keys (
  principal_id    uuid        NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
  key             uuid        NOT NULL,
  action          text        NOT NULL,
  request_sha256  bytea       NOT NULL,
  state           text        NOT NULL DEFAULT 'in_progress' CHECK (state IN ('in_progress', 'completed')),
  response_status smallint,
  response_body   jsonb,
  resource_id     uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  PRIMARY KEY (principal_id, key)
);

CREATE INDEX ON idempotency_keys (expires_at);

COMMENT ON TABLE idempotency_keys IS 'Idempotency keys with their final answers; written by the functions of pg_idempotency, emptied by idempotency_cleanup.';

-- Roles belong to the whole cluster: another database may have made them already.
-- +goose StatementBegin
DO $$
DECLARE
  role text;
BEGIN
  FOREACH role IN ARRAY ARRAY['idempotency_app', 'idempotency_worker'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      NULL;
    END;
  END LOOP;
END
$$;
-- +goose StatementEnd

GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO idempotency_app;

GRANT EXECUTE ON FUNCTION
  idempotency_begin(uuid, uuid, text, bytea, interval, timestamptz),
  idempotency_begin_request(uuid, text, text, text, text, bytea, interval, timestamptz),
  idempotency_complete(uuid, uuid, integer, jsonb, uuid),
  idempotency_save_final(uuid, uuid, text, bytea, integer, jsonb, uuid, interval, timestamptz),
  idempotency_fingerprint(text, text, bytea),
  idempotency_canonical_json(text)
TO idempotency_app;

GRANT SELECT, DELETE ON idempotency_keys TO idempotency_worker;

GRANT EXECUTE ON FUNCTION idempotency_stats(), idempotency_schedule_cleanup(), idempotency_unschedule_cleanup() TO idempotency_worker;
GRANT EXECUTE ON PROCEDURE idempotency_cleanup(integer) TO idempotency_worker;
GRANT SELECT ON idempotency_waiting TO idempotency_worker;

-- +goose Down
DROP TABLE idempotency_keys;
DROP EXTENSION pg_idempotency;

-- The roles go too, unless another database of the cluster still needs them.
-- +goose StatementBegin
DO $$
BEGIN
  DROP ROLE idempotency_app, idempotency_worker;
EXCEPTION WHEN dependent_objects_still_exist THEN
  NULL;
END
$$;
-- +goose StatementEnd
