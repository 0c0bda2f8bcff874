-- The extension, the tables by their migrations, and two principals. Runs first.
SET client_min_messages = warning;
\getenv source PG_ABS_SRCDIR
CREATE EXTENSION pg_idempotency;
\set migration `sed '/^-- +goose Down/,$d' :'source'/../../migrations/00001_principals.sql`
:migration
\set migration `sed '/^-- +goose Down/,$d' :'source'/../../migrations/00002_idempotency_keys.sql`
:migration
INSERT INTO principals (id) VALUES
  ('00000000-0000-7000-8000-000000000001'),
  ('00000000-0000-7000-8000-000000000002');
SELECT count(*) AS principals FROM principals;
