-- Opt-in: idempotency_keys on a Citus cluster, distributed by principal, with principals as a reference table. Run it on the coordinator, in a
-- database with the extension citus and its workers. Not together with the partitioned table.

-- +goose Up
-- A foreign key to a reference table takes one connection a worker for the whole transaction.
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
-- Citus wants foreign keys added after the tables are distributed.
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_principal_id_fkey;
SELECT create_reference_table('principals');
SELECT create_distributed_table('idempotency_keys', 'principal_id');
ALTER TABLE idempotency_keys
  ADD CONSTRAINT idempotency_keys_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals (id) ON DELETE CASCADE;

-- +goose Down
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_principal_id_fkey;
SELECT undistribute_table('idempotency_keys');
SELECT undistribute_table('principals');
ALTER TABLE idempotency_keys
  ADD CONSTRAINT idempotency_keys_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES principals (id) ON DELETE CASCADE;
