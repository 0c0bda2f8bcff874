-- The table is not a member of the extension; every function is, and PUBLIC may run none of them.
SELECT count(*) AS tables FROM pg_depend JOIN pg_extension ON pg_extension.oid = refobjid
WHERE extname = 'pg_idempotency' AND deptype = 'e' AND classid = 'pg_class'::regclass AND objid IN (SELECT oid FROM pg_class WHERE relkind <> 'v');
SELECT proname, provolatile, proparallel, proisstrict, prosecdef, has_function_privilege('idempotency_app', pg_proc.oid, 'EXECUTE') AS app,
       has_function_privilege('idempotency_worker', pg_proc.oid, 'EXECUTE') AS worker,
       proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0) AS public
FROM pg_depend JOIN pg_extension ON pg_extension.oid = refobjid JOIN pg_proc ON pg_proc.oid = objid
WHERE extname = 'pg_idempotency' AND deptype = 'e' AND classid = 'pg_proc'::regclass
ORDER BY proname;
SELECT grantee, string_agg(privilege_type, ', ' ORDER BY privilege_type) AS privileges
FROM information_schema.role_table_grants WHERE table_name = 'idempotency_keys' AND grantee LIKE 'idempotency%' GROUP BY grantee ORDER BY grantee;
-- Every function has a comment.
SELECT count(*) AS without_comment FROM pg_proc WHERE proname LIKE 'idempotency%' AND obj_description(oid, 'pg_proc') IS NULL;
