-- pg_idempotency 1.0: the SQL interface. The extension holds code only; the table idempotency_keys belongs to the application's
-- migrations, in the schema that the extension is installed in.
\echo Use "CREATE EXTENSION pg_idempotency" to load this file. \quit

CREATE FUNCTION idempotency_begin(
  principal_id uuid,
  key uuid,
  action text,
  request_sha256 bytea,
  ttl interval DEFAULT NULL,
  at timestamptz DEFAULT NULL,
  OUT outcome text,
  OUT response_status smallint,
  OUT response_body jsonb,
  OUT resource_id uuid,
  OUT expires_at timestamptz
)
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_begin';

COMMENT ON FUNCTION idempotency_begin(uuid, uuid, text, bytea, interval, timestamptz) IS
'Claims an idempotency key for this transaction. outcome: started (run the operation, then idempotency_complete), replay (give the stored answer), reuse (the key belongs to another request), in_progress (the first request still runs).';

CREATE FUNCTION idempotency_begin_request(
  principal_id uuid,
  key text,
  action text,
  method text,
  path text,
  body bytea DEFAULT NULL,
  ttl interval DEFAULT NULL,
  at timestamptz DEFAULT NULL,
  OUT outcome text,
  OUT response_status smallint,
  OUT response_body jsonb,
  OUT resource_id uuid,
  OUT expires_at timestamptz
)
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_begin_request';

COMMENT ON FUNCTION idempotency_begin_request(uuid, text, text, text, text, bytea, interval, timestamptz) IS
'As idempotency_begin, with the Idempotency-Key header parsed (a UUIDv7, bare or quoted) and the fingerprint computed in the server.';

CREATE FUNCTION idempotency_complete(
  principal_id uuid,
  key uuid,
  response_status integer,
  response_body jsonb DEFAULT NULL,
  resource_id uuid DEFAULT NULL
)
RETURNS jsonb
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_complete';

COMMENT ON FUNCTION idempotency_complete(uuid, uuid, integer, jsonb, uuid) IS
'Stores the 2xx answer of a key that this transaction started, and returns the body as stored: give exactly that to the client.';

CREATE FUNCTION idempotency_save_final(
  principal_id uuid,
  key uuid,
  action text,
  request_sha256 bytea,
  response_status integer,
  response_body jsonb DEFAULT NULL,
  resource_id uuid DEFAULT NULL,
  ttl interval DEFAULT NULL,
  at timestamptz DEFAULT NULL
)
RETURNS jsonb
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_save_final';

COMMENT ON FUNCTION idempotency_save_final(uuid, uuid, text, bytea, integer, jsonb, uuid, interval, timestamptz) IS
'Stores a final error (400 403 404 409 410 412 413 415 422) after the operation was rolled back. An answer that is there already stays; never waits for a running duplicate.';

CREATE FUNCTION idempotency_fingerprint(method text, path text, body bytea DEFAULT NULL)
RETURNS bytea
LANGUAGE c IMMUTABLE CALLED ON NULL INPUT PARALLEL SAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_fingerprint';

COMMENT ON FUNCTION idempotency_fingerprint(text, text, bytea) IS
'SHA-256 over the upper-case method, the escaped path without query and the canonical body (RFC 8785 when it has a canonical form, else its raw bytes).';

CREATE FUNCTION idempotency_canonical_json(document text)
RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_canonical_json';

COMMENT ON FUNCTION idempotency_canonical_json(text) IS
'The canonical form of a JSON document (RFC 8785); an error when it has none.';

CREATE PROCEDURE idempotency_cleanup(batch_size integer DEFAULT NULL)
LANGUAGE c SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_cleanup';

COMMENT ON PROCEDURE idempotency_cleanup(integer) IS
'Deletes expired keys, the oldest first, and commits after every batch until one is smaller than batch_size.';

CREATE FUNCTION idempotency_schedule_cleanup()
RETURNS bigint
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_schedule_cleanup';

COMMENT ON FUNCTION idempotency_schedule_cleanup() IS
'Schedules idempotency_cleanup every idempotency.cleanup_interval as the pg_cron job idempotency_cleanup, replacing an older one; returns its job id.';

CREATE FUNCTION idempotency_unschedule_cleanup()
RETURNS boolean
LANGUAGE c VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_unschedule_cleanup';

COMMENT ON FUNCTION idempotency_unschedule_cleanup() IS
'Removes the pg_cron job idempotency_cleanup; returns whether there was one.';

REVOKE ALL ON FUNCTION
  idempotency_begin(uuid, uuid, text, bytea, interval, timestamptz),
  idempotency_begin_request(uuid, text, text, text, text, bytea, interval, timestamptz),
  idempotency_complete(uuid, uuid, integer, jsonb, uuid),
  idempotency_save_final(uuid, uuid, text, bytea, integer, jsonb, uuid, interval, timestamptz),
  idempotency_fingerprint(text, text, bytea),
  idempotency_canonical_json(text),
  idempotency_schedule_cleanup(),
  idempotency_unschedule_cleanup()
FROM PUBLIC;

REVOKE ALL ON PROCEDURE idempotency_cleanup(integer) FROM PUBLIC;
