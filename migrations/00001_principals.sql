-- The smallest table of principals that idempotency_keys can refer to. Leave it out when the application has its own: then record version 1 as
-- applied, and keep the name and the key principals(id uuid).

-- +goose Up
CREATE TABLE principals (
  id uuid PRIMARY KEY
);

COMMENT ON TABLE principals IS 'Who sends requests; idempotency keys are valid per principal.';

-- +goose Down
DROP TABLE principals;
