// schedule_cleanup and unschedule_cleanup: the cleanup as a named pg_cron job, and one that trims its history.
// Called by the entry points idempotency_schedule_cleanup and idempotency_unschedule_cleanup.
#include <cstdlib>
#include <optional>
#include <string>

#include "maintenance.hpp"
#include "pg/arguments.hpp"
#include "pg/spi.hpp"
#include "settings.hpp"
#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

constexpr const char* cleanup_job = "idempotency_cleanup";
constexpr const char* history_job = "idempotency_cleanup_history";

/// A job of its own, once a day: pg_cron runs several statements of one job in one transaction, in which the cleanup could
/// not commit its batches; and the history, which holds the runs of every job, has no index that this could use.
constexpr const char* trim_history =
    "DELETE FROM cron.job_run_details"
    " WHERE start_time OPERATOR(pg_catalog.<) (pg_catalog.now() OPERATOR(pg_catalog.-) interval '1 day')"
    " AND username OPERATOR(pg_catalog.=) CURRENT_USER"
    " AND database OPERATOR(pg_catalog.=) pg_catalog.current_database()"
    " AND pg_catalog.regexp_match(command, '[.]idempotency_(cleanup|maintain_partitions)[(][)]') IS NOT NULL";
constexpr const char* history_schedule = "17 3 * * *";

constexpr int minute = 60;
constexpr int hour = 60 * minute;
constexpr int day = 24 * hour;

std::string every(int steps) { return steps == 1 ? "*" : "*/" + std::to_string(steps); }

/// The cleanup interval as a schedule of pg_cron; nothing when there is none.
std::optional<std::string> schedule_of(int seconds, bool seconds_supported) {
    if (seconds < minute) {
        return seconds_supported ? std::optional(std::to_string(seconds) + " seconds") : std::nullopt;
    }
    if (seconds == day) {
        return "0 0 * * *";
    }
    if (seconds >= hour && seconds % hour == 0 && day % seconds == 0) {
        return "0 " + every(seconds / hour) + " * * *";
    }
    if (seconds % minute == 0 && hour % seconds == 0) {
        return every(seconds / minute) + " * * * *";
    }
    return std::nullopt;
}

/// A partitioned table is cleaned by dropping partitions.
std::string cleanup_call(Oid function) {
    return "CALL " + quoted_schema(function) +
           (is_partitioned(function) ? ".idempotency_maintain_partitions()" : ".idempotency_cleanup()");
}

std::string this_database() {
    return pg::call([] { return get_database_name(MyDatabaseId); });
}

/// What to type when pg_cron is not in this database: that depends on whether the server runs it, and where.
std::string hint_without_pg_cron(Oid function) {
    const char* const cron_database = pg::call([] { return GetConfigOption("cron.database_name", true, false); });
    const std::string database = this_database();
    if (cron_database == nullptr) {
        return "Install pg_cron (Debian: postgresql-" + std::to_string(PG_VERSION_NUM / 10000) +
               "-cron), add it to shared_preload_libraries, set cron.database_name to this database, restart, and"
               " CREATE EXTENSION pg_cron.";
    }
    if (database == cron_database) {
        return "CREATE EXTENSION pg_cron;";
    }
    return "Type in the database that cron.database_name names: SELECT cron.schedule_in_database(" +
           pg::quoted_literal(cleanup_job + (" " + database)) + ", " +
           pg::quoted_literal(schedule_of(settings::cleanup_interval, true).value_or("*/5 * * * *")) + ", " +
           pg::quoted_literal(cleanup_call(function)) + ", " + pg::quoted_literal(database) + ");";
}

/// @return the version of the extension pg_cron
std::string require_pg_cron(Oid function) {
    const auto version = pg::first_text(
        "SELECT extversion FROM pg_catalog.pg_extension"
        " WHERE extname OPERATOR(pg_catalog.=) 'pg_cron'",
        {});
    if (!version) {
        pg::fail(ERRCODE_UNDEFINED_OBJECT, "extension pg_cron is not installed in this database",
                 "The scheduled cleanup is a pg_cron job. CALL idempotency_cleanup() works without it.",
                 hint_without_pg_cron(function));
    }
    if (!pg::first_value("SELECT true WHERE pg_catalog.has_schema_privilege('cron', 'USAGE')", {})) {
        const std::string role = pg::call([] { return quote_identifier(GetUserNameFromId(GetUserId(), false)); });
        pg::fail(ERRCODE_INSUFFICIENT_PRIVILEGE, "permission denied for schema cron",
                 "The current role may not use pg_cron.",
                 "Type as a superuser: GRANT USAGE ON SCHEMA cron TO " + role + ";");
    }
    return *version;
}

/// pg_cron opens a session as the role that owns the job.
void require_login() {
    if (!pg::first_value(
            "SELECT true FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) CURRENT_USER AND rolcanlogin",
            {})) {
        pg::fail(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the current role cannot log in",
                 "pg_cron runs a job in a session of the role that scheduled it.",
                 "Schedule the cleanup as a role with LOGIN that is a member of idempotency_worker.");
    }
}

/// pg_cron has schedules in seconds from 1.5 on.
bool has_seconds(const std::string& version) {
    char* end = nullptr;
    const long major = std::strtol(version.c_str(), &end, 10);
    const long minor = *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
    return major > 1 || (major == 1 && minor >= 5);
}

std::string require_schedule(const std::string& pg_cron_version) {
    const bool seconds_supported = has_seconds(pg_cron_version);
    if (auto schedule = schedule_of(settings::cleanup_interval, seconds_supported)) {
        return *schedule;
    }
    pg::fail(
        ERRCODE_INVALID_PARAMETER_VALUE, "idempotency.cleanup_interval has no cron schedule",
        "It is " + std::to_string(settings::cleanup_interval) + " seconds. pg_cron " + pg_cron_version +
            (seconds_supported ? " knows seconds up to 59, minutes that divide an hour and hours that divide a day."
                               : " knows minutes that divide an hour and hours that divide a day, but no seconds."),
        std::string("Set it to ") + (seconds_supported ? "1 to 59 seconds, to " : "") +
            "1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes, or to 1, 2, 3, 4, 6, 8, 12 or 24 hours.");
}

/// Removes our job of this name.
/// @return whether there was one
bool unschedule(const std::string& job) {
    const bool scheduled = pg::first_value(
                               "SELECT true FROM cron.job WHERE jobname OPERATOR(pg_catalog.=) $1"
                               " AND username OPERATOR(pg_catalog.=) CURRENT_USER",
                               {job})
                               .has_value();
    if (scheduled) {
        pg::first_value("SELECT cron.unschedule($1)", {job});
    }
    return scheduled;
}

/// pg_cron replaces schedule and command of a job with our name, and nothing else: it would go on in another database,
/// or stay switched off.
void replace_what_pg_cron_would_keep() {
    if (const auto database = pg::first_text("SELECT database FROM cron.job WHERE jobname OPERATOR(pg_catalog.=) $1"
                                             " AND username OPERATOR(pg_catalog.=) CURRENT_USER"
                                             " AND database OPERATOR(pg_catalog.<>) pg_catalog.current_database()",
                                             {cleanup_job})) {
        pg::fail(ERRCODE_DUPLICATE_OBJECT, "there is a job idempotency_cleanup for another database",
                 "It runs in the database " + pg::quoted_literal(*database) + ".",
                 "Schedule that one again under another name, then SELECT cron.unschedule('idempotency_cleanup');");
    }
    if (pg::first_value("SELECT true FROM cron.job WHERE jobname OPERATOR(pg_catalog.=) $1"
                        " AND username OPERATOR(pg_catalog.=) CURRENT_USER AND NOT active",
                        {cleanup_job})) {
        unschedule(cleanup_job);
    }
}

}  // namespace

Datum schedule_cleanup(FunctionCallInfo fcinfo) {
    const pg::Spi spi;
    const Oid function = fcinfo->flinfo->fn_oid;
    const std::string schedule = require_schedule(require_pg_cron(function));
    require_login();
    replace_what_pg_cron_would_keep();
    constexpr const char* schedule_statement = "SELECT cron.schedule($1, $2, $3)";
    pg::first_value(schedule_statement, {history_job, history_schedule, trim_history});
    return pg::first_value(schedule_statement, {cleanup_job, schedule, cleanup_call(function)})
        .value_or(Int64GetDatum(0));
}

Datum unschedule_cleanup(FunctionCallInfo fcinfo) {
    const pg::Spi spi;
    require_pg_cron(fcinfo->flinfo->fn_oid);
    unschedule(history_job);
    return BoolGetDatum(unschedule(cleanup_job));
}

}  // namespace idempotency
