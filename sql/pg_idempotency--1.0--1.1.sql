-- pg_idempotency 1.0 to 1.1: the partitioned key table.
\echo Use "ALTER EXTENSION pg_idempotency UPDATE TO '1.1'" to load this file. \quit

CREATE PROCEDURE idempotency_maintain_partitions()
LANGUAGE c SECURITY INVOKER
AS 'MODULE_PATHNAME', 'idempotency_maintain_partitions';

COMMENT ON PROCEDURE idempotency_maintain_partitions() IS
'Makes partitions of a partitioned idempotency_keys ahead of time, drops those whose keys have all expired, and deletes the expired keys of the default partition. For the owner of the table; commits after every step. A partition in use is left for the next run.';

COMMENT ON FUNCTION idempotency_schedule_cleanup() IS
'Schedules idempotency_cleanup, or idempotency_maintain_partitions when the table is partitioned, every idempotency.cleanup_interval as the pg_cron job idempotency_cleanup, replacing an older one; returns its job id. A second job, idempotency_cleanup_history, trims what pg_cron notes of their runs once a day.';

REVOKE ALL ON PROCEDURE idempotency_maintain_partitions() FROM PUBLIC;
