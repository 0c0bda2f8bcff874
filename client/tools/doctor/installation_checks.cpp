// Checks of what was installed: the extension, its version, and the table.
// Read by examine.cpp.
#include <nlohmann/json.hpp>

#include "check.hpp"
#include "model.hpp"

namespace doctor {
namespace {

constexpr std::string_view server_sql = R"(
SELECT 'ok', format('PostgreSQL %s, database %I, role %I%s', current_setting('server_version'), current_database(), CURRENT_USER,
  CASE WHEN pg_is_in_recovery() THEN '; a standby, on which idempotency_begin raises 25006' END), '')";

// $1: migrate
constexpr std::string_view extension_sql = R"(
WITH installed AS (
  SELECT n.nspname, has_schema_privilege(n.oid, 'USAGE') AS usable
  FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
  WHERE e.extname = 'pg_idempotency'
), kept AS (  -- a table that outlived its extension
  SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relname = 'idempotency_keys' AND c.relkind IN ('r', 'p') LIMIT 1
)
SELECT CASE WHEN usable THEN 'ok' ELSE 'unknown' END,
  format('pg_idempotency is installed in the schema %I%s', nspname, CASE WHEN NOT usable THEN ', which this role may not use' END),
  CASE WHEN NOT usable THEN format('GRANT USAGE ON SCHEMA %I TO %I;', nspname, CURRENT_USER) END
FROM installed
UNION ALL
SELECT 'critical', 'pg_idempotency is not installed in this database', concat_ws(E'\n',
  CASE WHEN NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_idempotency')
    THEN format('$ sudo apt install postgresql-%s-pg-idempotency', current_setting('server_version_num')::integer / 10000) END,
  coalesce((SELECT format('CREATE EXTENSION pg_idempotency SCHEMA %I;', nspname) FROM kept), format('$ %s up "$CONNINFO"', $1::text)))
WHERE NOT EXISTS (SELECT FROM installed))";

// $1: this tool's version
constexpr std::string_view version_sql = R"(
WITH version AS (
  SELECT e.extversion AS sql, current_setting('idempotency.version', true) AS library, a.default_version AS available,
    substring($1::text FROM '^[0-9]+[.][0-9]+') AS tool, current_setting('server_version_num')::integer / 10000 AS major, n.nspname,
    EXISTS (SELECT FROM pg_settings WHERE name = 'shared_preload_libraries' AND setting LIKE '%pg_idempotency%') AS preloaded
  FROM pg_extension AS e
  JOIN pg_namespace AS n ON n.oid = e.extnamespace
  LEFT JOIN pg_available_extensions AS a ON a.name = e.extname
  WHERE e.extname = 'pg_idempotency'
), number AS (
  SELECT string_to_array(sql, '.')::integer[] AS sql, string_to_array(library, '.')::integer[] AS library,
    string_to_array(available, '.')::integer[] AS available, string_to_array(tool, '.')::integer[] AS tool
  FROM version
)
SELECT 'ok', format('SQL objects, library, files on the server and this tool are %s%s', v.sql, CASE WHEN preloaded THEN '; preloaded' END), ''
FROM version AS v
UNION ALL
SELECT problem.* FROM version AS v, number AS n, LATERAL (VALUES
  (CASE WHEN v.library IS NULL THEN 'unknown' END,
   'which version the library has: this role may call none of its functions',
   format('GRANT EXECUTE ON FUNCTION %I.idempotency_stats() TO %I;', v.nspname, CURRENT_USER)),
  (CASE WHEN n.sql < n.available THEN 'warning' END,
   format('the SQL objects are %s, and the server has the files of %s', v.sql, v.available), 'ALTER EXTENSION pg_idempotency UPDATE;'),
  (CASE WHEN n.library < n.sql THEN 'critical' WHEN n.library < n.available THEN 'warning' END,
   format('the library is %s, but the SQL objects are %s and the files on the server %s', v.library, v.sql, v.available),
   CASE WHEN preloaded THEN '$ sudo systemctl restart postgresql'
     ELSE format('$ sudo apt install --reinstall postgresql-%s-pg-idempotency', v.major) END),
  (CASE WHEN n.tool <> n.available THEN 'warning' END,
   format('this tool is %s, and the server has the files of %s', v.tool, v.available),
   CASE WHEN n.tool < n.available THEN '$ sudo apt install idempotency-tools'
     ELSE format('$ sudo apt install postgresql-%s-pg-idempotency', v.major) END)
) AS problem (status, found, remedy)
WHERE problem.status IS NOT NULL)";

// $1: the model as JSON, $2: migrate
constexpr std::string_view table_sql = R"(
WITH {key_table}, expected_column AS (
  SELECT * FROM jsonb_to_recordset($1::jsonb -> 'columns') AS c (position integer, name name, type text, not_null boolean, value text)
), actual_column AS (
  SELECT attname AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS not_null, coalesce(pg_get_expr(adbin, adrelid), '') AS value
  FROM key_table JOIN pg_attribute ON attrelid = key_table.oid AND attnum > 0 AND NOT attisdropped
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
), column_problem AS (
  SELECT e.position, name, problem.*
  FROM expected_column AS e FULL JOIN actual_column AS a USING (name), LATERAL (VALUES
    (CASE WHEN a.type IS NULL THEN 'critical' END, 'is missing; a table with rows needs them restored from a backup',
     format('ADD COLUMN %I %s%s%s', name, e.type, ' DEFAULT ' || nullif(e.value, ''), CASE WHEN e.not_null THEN ' NOT NULL' END)),
    (CASE WHEN e.type IS NULL THEN CASE WHEN a.not_null AND a.value = '' THEN 'critical' ELSE 'warning' END END,
     'does not belong to it', format('DROP COLUMN %I', name)),
    (CASE WHEN a.type <> e.type THEN 'critical' END, format('has the type %s in place of %s', a.type, e.type),
     format('ALTER COLUMN %1$I TYPE %2$s USING %1$I::%2$s', name, e.type)),
    (CASE WHEN e.not_null AND NOT a.not_null THEN 'warning' END, 'may be NULL', format('ALTER COLUMN %I SET NOT NULL', name)),
    (CASE WHEN a.not_null AND NOT e.not_null THEN 'critical' END, 'must not be NULL, which a key in progress has there',
     format('ALTER COLUMN %I DROP NOT NULL', name)),
    (CASE WHEN a.value <> e.value THEN 'critical' END,
     format('has %s in place of %s', coalesce('the default ' || nullif(a.value, ''), 'no default'), coalesce(nullif(e.value, ''), 'none')),
     format('ALTER COLUMN %I %s', name, coalesce('SET DEFAULT ' || nullif(e.value, ''), 'DROP DEFAULT')))
  ) AS problem (status, found, remedy)
), constraint_problem AS (
  SELECT t.name, e.definition, coalesce((  -- a table has one primary key, whatever its name
    SELECT conname FROM pg_constraint WHERE conrelid = t.oid AND contype = 'p' AND e.definition LIKE 'PRIMARY KEY%'), e.name) AS old_name,
    e.name AS new_name, replace(e.definition, 'REFERENCES ', format('REFERENCES %I.', t.schema)) AS new_definition
  FROM key_table AS t, jsonb_to_recordset($1::jsonb -> 'constraints') AS e (name name, definition text)
  WHERE NOT EXISTS (
    SELECT FROM pg_constraint WHERE conrelid = t.oid
    AND regexp_replace(pg_get_constraintdef(oid), 'REFERENCES ("[^"]+"|[a-z0-9_]+)[.]', 'REFERENCES ') = e.definition)
), expiry_index AS (
  SELECT format('%I.%I', t.schema, c.relname) AS name, i.indisvalid
  FROM key_table AS t JOIN pg_index AS i ON i.indrelid = t.oid JOIN pg_class AS c ON c.oid = i.indexrelid
  WHERE pg_get_indexdef(i.indexrelid) LIKE '%' || ($1::jsonb ->> 'index')
)
SELECT 'ok', name || CASE WHEN partitioned THEN ', partitioned,' ELSE '' END || ' is as the migrations make it', '' FROM key_table
UNION ALL
SELECT 'critical', format('the table %I.idempotency_keys is missing', n.nspname), concat_ws(E'\n',
  CASE WHEN to_regclass(format('%I.goose_db_version', n.nspname)) IS NOT NULL  -- it says that the migration is applied
    THEN format('INSERT INTO %I.goose_db_version (version_id, is_applied) VALUES (2, false);', n.nspname) END,
  format('$ %s%s up "$CONNINFO"', CASE WHEN n.nspname <> 'public' THEN format('PGOPTIONS=''-c search_path=%s'' ', replace(quote_ident(n.nspname), ' ', '\ ')) END, $2::text))
FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_idempotency' AND NOT EXISTS (SELECT FROM key_table)
UNION ALL
SELECT 'critical', format('%s is unlogged: a crash of the server empties it, and repeats run again', name), format('ALTER TABLE %s SET LOGGED;', name)
FROM key_table WHERE relpersistence <> 'p'
UNION ALL (
SELECT p.status, format('the column %I %s', p.name, p.found), format('ALTER TABLE %s %s;', t.name, p.remedy)
FROM key_table AS t, column_problem AS p WHERE p.status IS NOT NULL ORDER BY p.position)
UNION ALL
SELECT CASE WHEN definition LIKE 'PRIMARY KEY%' THEN 'critical' ELSE 'warning' END, 'there is no ' || definition,
  format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I, ADD CONSTRAINT %I %s;', name, old_name, new_name, new_definition)
FROM constraint_problem
UNION ALL
SELECT 'warning', coalesce('the index ' || broken.name || ' is not valid', 'there is no index on expires_at') || ': the cleanup reads the whole table',
  CASE WHEN broken.name IS NOT NULL AND NOT t.partitioned THEN format('REINDEX INDEX CONCURRENTLY %s;', broken.name)
    ELSE format('CREATE INDEX %sON %s (expires_at);', CASE WHEN NOT t.partitioned THEN 'CONCURRENTLY ' END, t.name) END
FROM key_table AS t LEFT JOIN (SELECT min(name) AS name FROM expiry_index) AS broken ON true
WHERE NOT EXISTS (SELECT FROM expiry_index WHERE indisvalid))";

std::string model_as_json() {
    nlohmann::json columns = nlohmann::json::array();
    for (const model::Column& column : model::columns) {
        columns.push_back({{"position", columns.size()},
                           {"name", column.name},
                           {"type", column.type},
                           {"not_null", column.not_null},
                           {"value", column.default_value}});
    }
    nlohmann::json constraints = nlohmann::json::array();
    for (const model::Constraint& constraint : model::constraints) {
        constraints.push_back({{"name", constraint.name}, {"definition", constraint.definition}});
    }
    return nlohmann::json{{"columns", columns}, {"constraints", constraints}, {"index", model::index}}.dump();
}

}  // namespace

std::vector<Check> installation_checks() {
    constexpr const char* migrate = IDEMPOTENCY_MIGRATIONS "/migrate";
    return {
        {.name = "server", .about = "which server, database and role this is", .sql = server_sql},
        {.name = "extension", .about = "pg_idempotency is installed", .sql = extension_sql, .parameters = {migrate}},
        {.name = "version",
         .about = "SQL objects, library, files on the server and this tool fit together",
         .needs = Needs::extension,
         .loads_library = true,
         .in_schema = true,
         .sql = version_sql,
         .parameters = {IDEMPOTENCY_VERSION}},
        {.name = "table",
         .about = "idempotency_keys is as the migrations make it",
         .needs = Needs::extension,
         .sql = table_sql,
         .parameters = {model_as_json(), migrate}},
    };
}

}  // namespace doctor
