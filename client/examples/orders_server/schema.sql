-- The tables of the orders server. Applied after the migrations, by the demo and the tests.
CREATE TABLE orders (
  id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  principal_id uuid        NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
  sku          text        NOT NULL,
  quantity     integer     NOT NULL CHECK (quantity > 0),
  version      integer     NOT NULL DEFAULT 1,
  created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX ON orders (principal_id, created_at, id);

CREATE TABLE tokens (
  id            uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  principal_id  uuid        NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
  secret_sha256 bytea       NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE notes (
  id           uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  principal_id uuid        NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
  text         text        NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now()
);
