// Checks of who may do what, and of the settings.
// Read by examine.cpp.
#include "check.hpp"

namespace doctor {
namespace {

// What migrations/00002_idempotency_keys.sql grants.
constexpr std::string_view grants_sql = R"(
WITH {key_table}, granted (role, object, privilege) AS (VALUES
  ('idempotency_app', 'idempotency_keys', 'SELECT'),
  ('idempotency_app', 'idempotency_keys', 'INSERT'),
  ('idempotency_app', 'idempotency_keys', 'UPDATE'),
  ('idempotency_app', 'idempotency_keys', 'DELETE'),
  ('idempotency_app', 'idempotency_begin', 'EXECUTE'),
  ('idempotency_app', 'idempotency_begin_request', 'EXECUTE'),
  ('idempotency_app', 'idempotency_complete', 'EXECUTE'),
  ('idempotency_app', 'idempotency_save_final', 'EXECUTE'),
  ('idempotency_app', 'idempotency_fingerprint', 'EXECUTE'),
  ('idempotency_app', 'idempotency_canonical_json', 'EXECUTE'),
  ('idempotency_worker', 'idempotency_keys', 'SELECT'),
  ('idempotency_worker', 'idempotency_keys', 'DELETE'),
  ('idempotency_worker', 'idempotency_waiting', 'SELECT'),
  ('idempotency_worker', 'idempotency_stats', 'EXECUTE'),
  ('idempotency_worker', 'idempotency_cleanup', 'EXECUTE'),
  ('idempotency_worker', 'idempotency_schedule_cleanup', 'EXECUTE'),
  ('idempotency_worker', 'idempotency_unschedule_cleanup', 'EXECUTE')
), object AS (
  SELECT p.proname AS name, 'ROUTINE ' || p.oid::regprocedure AS label, coalesce(p.proacl, acldefault('f', p.proowner)) AS acl
  FROM pg_extension AS e
  JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
  JOIN pg_proc AS p ON p.oid = d.objid
  WHERE e.extname = 'pg_idempotency'
  UNION ALL
  SELECT c.relname, 'TABLE ' || c.oid::regclass, nullif(c.relacl || ARRAY(
    SELECT unnest(attacl) FROM pg_attribute WHERE attrelid = c.oid AND attacl IS NOT NULL), '{}')
  FROM key_table AS t JOIN pg_namespace AS n ON n.nspname = t.schema
  JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname IN ('idempotency_keys', 'idempotency_waiting')
), missing AS (
  SELECT g.role, o.label, string_agg(g.privilege, ', ') AS privileges, r.oid IS NULL AS no_role
  FROM granted AS g JOIN object AS o ON o.name = g.object LEFT JOIN pg_roles AS r ON r.rolname = g.role
  WHERE r.oid IS NULL OR NOT CASE WHEN g.privilege = 'EXECUTE' THEN has_function_privilege(r.oid, substr(o.label, 9)::regprocedure, 'EXECUTE')
    ELSE has_table_privilege(r.oid, substr(o.label, 7)::regclass, g.privilege) END
  GROUP BY g.role, o.label, r.oid
)
SELECT 'ok', 'idempotency_app and idempotency_worker have what the migrations give, and PUBLIC has nothing', ''
UNION ALL
SELECT CASE WHEN bool_or(no_role) OR role <> 'idempotency_app' THEN 'warning' ELSE 'critical' END,
  CASE WHEN bool_or(no_role) THEN format('the role %I is missing', role)
    ELSE format('%I lacks %s', role, string_agg(privileges || ' on ' || label, ', ' ORDER BY label)) END,
  concat_ws(E'\n', CASE WHEN bool_or(no_role) THEN format('CREATE ROLE %I NOLOGIN;', role) END,
    string_agg(format('GRANT %s ON %s TO %I;', privileges, label, role), E'\n' ORDER BY label))
FROM missing GROUP BY role
UNION ALL
SELECT CASE WHEN o.name = 'idempotency_keys' THEN 'critical' ELSE 'warning' END,
  format('PUBLIC has %s on %s', string_agg(DISTINCT a.privilege_type, ', '), o.label), format('REVOKE ALL ON %s FROM PUBLIC;', o.label)
FROM object AS o, aclexplode(o.acl) AS a WHERE a.grantee = 0 GROUP BY o.name, o.label)";

constexpr std::string_view row_security_sql = R"(
WITH {key_table}
SELECT 'ok', CASE WHEN relrowsecurity THEN 'on, with policies for idempotency_app and idempotency_worker' ELSE 'off' END, '' FROM key_table
UNION ALL
SELECT g.status, format('row-level security is on, and no policy shows %I its rows: %s', g.role, g.effect),
  format('CREATE POLICY %I ON %s TO %I USING (%s);', g.policy, t.name, g.role, g.condition)
FROM key_table AS t, (VALUES
  ('critical', 'idempotency_app', 'idempotency_begin raises 42501', 'own_keys', 'principal_id = current_setting(''app.principal'', true)::uuid'),
  ('warning', 'idempotency_worker', 'the cleanup deletes nothing', 'clean_all', 'true')
) AS g (status, role, effect, policy, condition)
JOIN pg_roles AS r ON r.rolname = g.role
WHERE t.relrowsecurity AND NOT EXISTS (
  SELECT FROM pg_policy, unnest(polroles) AS p (role)
  WHERE polrelid = t.oid AND polpermissive AND (p.role = 0 OR pg_has_role(r.oid, p.role, 'USAGE'))))";

constexpr std::string_view settings_sql = R"(
WITH {stored_setting}
SELECT 'ok', format('key_ttl %s, claim %s, require_complete %s; the library is loaded %s', current_setting('idempotency.key_ttl', true),
  current_setting('idempotency.claim', true), current_setting('idempotency.require_complete', true),
  CASE WHEN EXISTS (SELECT FROM pg_settings WHERE name LIKE '%\_preload\_libraries' AND setting LIKE '%pg_idempotency%')
    THEN 'when a session begins' ELSE 'at the first call of a session' END), ''
UNION ALL
SELECT 'unknown', 'which settings there are: this role may call no function that loads the library', ''
WHERE NOT EXISTS (SELECT FROM pg_settings WHERE name = 'idempotency.version')
UNION ALL
SELECT 'warning', format('there is no setting %s, which %s sets', name, scope), format('ALTER %s RESET %s;', scope, name)
FROM stored WHERE name LIKE 'idempotency.%' AND name NOT IN (SELECT s.name FROM pg_settings AS s)
AND EXISTS (SELECT FROM pg_settings WHERE name = 'idempotency.version')
UNION ALL
SELECT 'warning', format('%s turns idempotency.require_complete off: a forgotten idempotency_complete leaves its key in progress', scope),
  format('ALTER %s RESET idempotency.require_complete;', scope)
FROM stored WHERE name = 'idempotency.require_complete' AND lower(value) IN ('off', 'false', 'no', '0', 'of', 'f', 'n')
UNION ALL
SELECT 'warning', 'the server turns idempotency.require_complete off: a forgotten idempotency_complete leaves its key in progress',
  E'LOAD ''pg_idempotency'';\nALTER SYSTEM SET idempotency.require_complete = on;\nSELECT pg_reload_conf();'
FROM pg_settings WHERE name = 'idempotency.require_complete' AND setting = 'off' AND source IN ('configuration file', 'command line'))";

constexpr std::string_view wait_limit_sql = R"(
WITH {stored_setting}, app AS (
  SELECT oid, rolname FROM pg_roles
  WHERE rolcanlogin AND NOT rolsuper AND pg_has_role(oid, (SELECT oid FROM pg_roles WHERE rolname = 'idempotency_app'), 'MEMBER')
), effective AS (  -- of the server as far as this session shows it, unless something closer sets it
  SELECT app.rolname, s.name, coalesce((
    SELECT value FROM stored WHERE stored.name = s.name AND setrole IN (0, app.oid) ORDER BY setdatabase = 0 AND setrole = 0, setrole = 0, setdatabase = 0 LIMIT 1),
    CASE WHEN s.source IN ('configuration file', 'command line') THEN s.reset_val END, s.none) AS value
  FROM app, (SELECT n.name, n.none, p.source, p.reset_val
    FROM (VALUES ('lock_timeout', '0'), ('idempotency.wait_timeout', '-1')) AS n (name, none) LEFT JOIN pg_settings AS p USING (name)) AS s
)
SELECT 'ok', CASE WHEN EXISTS (SELECT FROM app) THEN 'a repeat does not wait for the first request without end'
  ELSE 'no role that can log in is a member of idempotency_app' END, ''
UNION ALL
SELECT 'warning', format('a repeat of the role %I waits for the first request without end, unless the client library sets lock_timeout', rolname),
  format('ALTER ROLE %I IN DATABASE %I SET lock_timeout = ''5s'';', rolname, current_database())
FROM effective GROUP BY rolname
HAVING bool_and(CASE name WHEN 'lock_timeout' THEN value ~ '^0+ *[a-z]*$' ELSE value LIKE '-%' END))";

}  // namespace

std::vector<Check> configuration_checks() {
    return {
        {.name = "grants", .about = "roles and privileges", .needs = Needs::table, .sql = grants_sql},
        {.name = "row_security",
         .about = "policies, when row-level security is on",
         .needs = Needs::table,
         .sql = row_security_sql},
        {.name = "settings",
         .about = "idempotency.* of the server, the database and its roles",
         .needs = Needs::extension,
         .loads_library = true,
         .in_schema = true,
         .sql = settings_sql},
        {.name = "wait_limit",
         .about = "lock_timeout of the roles in idempotency_app",
         .needs = Needs::extension,
         .sql = wait_limit_sql},
    };
}

}  // namespace doctor
