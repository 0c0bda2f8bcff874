// Parts of SQL that several checks begin or end with, each under a name in braces.
// Put into the statements by examine.cpp.
#include <array>
#include <utility>

#include "check.hpp"

namespace doctor {
namespace {

/// The table in the extension's schema. hidden: a policy keeps rows of it from this role.
constexpr std::string_view key_table = R"(key_table AS (
  SELECT c.oid, n.nspname AS schema, format('%I.%I', n.nspname, c.relname) AS name, c.relkind = 'p' AS partitioned,
    c.relpersistence, c.relrowsecurity,
    row_security_active(c.oid) AND NOT EXISTS (
      SELECT FROM pg_policy
      WHERE polrelid = c.oid AND polpermissive AND polcmd IN ('r', '*') AND pg_get_expr(polqual, polrelid) = 'true'
      AND EXISTS (SELECT FROM unnest(polroles) AS r (role) WHERE role = 0 OR pg_has_role(role, 'USAGE'))) AS hidden
  FROM pg_extension AS e
  JOIN pg_namespace AS n ON n.oid = e.extnamespace
  JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'idempotency_keys' AND c.relkind IN ('r', 'p')
  WHERE e.extname = 'pg_idempotency'
))";

/// For a check that reads rows.
constexpr std::string_view or_hidden_rows = R"(
UNION ALL
SELECT 'unknown', format('row-level security hides rows of %s from %I', name, CURRENT_USER),
  format('CREATE POLICY %I ON %s FOR SELECT TO %I USING (true);', CURRENT_USER || '_sees_all', name, CURRENT_USER)
FROM key_table WHERE hidden)";

/// Settings that are stored for this database and for roles.
constexpr std::string_view stored_setting = R"(stored AS (
  SELECT s.setdatabase, s.setrole, r.rolname, split_part(c, '=', 1) AS name, substr(c, strpos(c, '=') + 1) AS value,
    format(CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ROLE ALL' WHEN s.setrole = 0 THEN 'DATABASE %2$I'
      WHEN s.setdatabase = 0 THEN 'ROLE %1$I' ELSE 'ROLE %1$I IN DATABASE %2$I' END, r.rolname, current_database()) AS scope
  FROM pg_db_role_setting AS s CROSS JOIN unnest(s.setconfig) AS c LEFT JOIN pg_roles AS r ON r.oid = s.setrole
  WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
))";

/// Who holds the lock of a key: the lock class of extension/key_lock.cpp.
constexpr std::string_view held_key = R"(held AS (
  SELECT DISTINCT l.pid, l.virtualtransaction FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
  WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objsubid = 18763 AND l.granted
))";

/// What stands in braces, by name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> fragments{{
    {"{key_table}", key_table},
    {"{or_hidden_rows}", or_hidden_rows},
    {"{stored_setting}", stored_setting},
    {"{held_key}", held_key},
}};

}  // namespace

std::string replaced(std::string_view text, std::string_view place, std::string_view name) {
    std::string filled(text);
    for (std::size_t at = filled.find(place); at != std::string::npos; at = filled.find(place, at + name.size())) {
        filled.replace(at, place.size(), name);
    }
    return filled;
}

std::string whole(std::string_view sql) {
    std::string statement(sql);
    for (const auto& [name, text] : fragments) {
        statement = replaced(statement, name, text);
    }
    return statement;
}

}  // namespace doctor
