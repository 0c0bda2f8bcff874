// What the doctor looks at: a check is a name and a statement that judges by itself.
// The lists are in *_checks.cpp, next to the SQL; examine.cpp runs them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "idempotency/transaction.hpp"

namespace doctor {

/// In the order in which one outweighs another.
enum class Status { ok, unknown, warning, critical };

struct Finding {
    std::string check;
    Status status = Status::ok;
    std::string found;
    std::string
        remedy;  ///< what to type, a line each: "$ " is before a line for the shell, every other one is for psql
};

/// What must be there before a check makes sense.
enum class Needs { nothing, extension, table };

struct Check {
    std::string_view name;
    std::string_view about;  ///< what it looks at, for the usage text
    Needs needs = Needs::nothing;
    bool loads_library = false;  ///< the statement reads settings of the library
    bool in_schema = false;  ///< the statement sees the extension's schema, behind pg_catalog; else pg_catalog alone

    /// Rows of (status, found, remedy). A row that is ok counts when it is the only one.
    /// Names of fragments stand in braces. It sees pg_catalog alone; with Needs::table the extension's schema behind it.
    std::string_view sql;
    std::vector<idempotency::Parameter> parameters{};

    /// What to type as a superuser when the role lacks a right. {schema} and {role} stand for the names.
    std::string_view rights = "GRANT pg_monitor TO {role};";
};

struct Options {
    std::string conninfo;
    std::vector<std::string> skipped;    ///< names of checks
    std::chrono::seconds patience{120};  ///< how long a wait, an idle transaction or a key in progress may last
};

[[nodiscard]] std::vector<Check> installation_checks();
[[nodiscard]] std::vector<Check> configuration_checks();
[[nodiscard]] std::vector<Check> cleanup_checks();
[[nodiscard]] std::vector<Check> running_checks(std::chrono::seconds patience);

/// Where pg_cron is: a row as a check gives it, or with the status "look in", the database that holds the jobs, what schedules the cleanup there, then
/// that database quoted, and whether partitions are to be maintained.
extern const std::string_view cron_place_sql;
/// Rows as a check gives them, from the database that holds the jobs. $1: the examined database, $2: what schedules the cleanup, $3: whether
/// partitions are maintained.
extern const std::string_view cron_job_sql;

/// A statement with the fragments that it names in braces.
[[nodiscard]] std::string whole(std::string_view sql);

/// A text with `name` in every `place`.
[[nodiscard]] std::string replaced(std::string_view text, std::string_view place, std::string_view name);

/// For idempotency_stats(), and rows without their answers.
inline constexpr std::string_view rights_on_rows =
    "GRANT EXECUTE ON FUNCTION {schema}.idempotency_stats() TO {role};\n"
    "GRANT SELECT (principal_id, key, state, created_at, expires_at) ON {schema}.idempotency_keys TO {role};";

}  // namespace doctor
