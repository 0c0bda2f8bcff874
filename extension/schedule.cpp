// schedule_cleanup and unschedule_cleanup: the cleanup as a named pg_cron job.
// Called by the entry points idempotency_schedule_cleanup and idempotency_unschedule_cleanup.
#include <optional>
#include <string>

#include "pg/arguments.hpp"
#include "settings.hpp"
#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

constexpr const char* job_name = "idempotency_cleanup";

/// Runs one statement with text parameters.
/// @return the first column of the first row, or nothing when there is no row
std::optional<Datum> run(const char* sql, std::initializer_list<std::string> texts) {
    Datum values[3];
    Oid types[3];
    int count = 0;
    for (const std::string& text : texts) {
        values[count] = pg::text_datum(text);
        types[count++] = TEXTOID;
    }
    bool is_null = false;
    bool found = false;
    const Datum value = pg::call([&] {
        SPI_execute_with_args(sql, count, types, values, nullptr, false, 1);
        found = SPI_processed > 0 && SPI_tuptable != nullptr;
        return found ? SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null) : Datum{};
    });
    return found && !is_null ? std::optional(value) : std::nullopt;
}

void require_pg_cron() {
    const bool installed = run("SELECT true FROM pg_catalog.pg_extension"
                               " WHERE extname OPERATOR(pg_catalog.=) 'pg_cron'",
                               {})
                               .has_value();
    if (!installed) {
        pg::fail(ERRCODE_UNDEFINED_OBJECT, "extension pg_cron is not installed in this database",
                 "The scheduled cleanup is a pg_cron job. CALL idempotency_cleanup() works without it.",
                 "Install pg_cron (Debian: postgresql-" + std::to_string(PG_VERSION_NUM / 10000) +
                     "-cron), add it to shared_preload_libraries, set cron.database_name to this database, restart, and"
                     " CREATE EXTENSION pg_cron.");
    }
}

/// The cleanup interval as a cron schedule: minutes that divide an hour, or hours that divide a day.
std::string schedule_of(int seconds) {
    constexpr int minute = 60;
    constexpr int hour = 60 * minute;
    constexpr int day = 24 * hour;
    if (seconds == day) {
        return "0 0 * * *";
    }
    if (seconds >= hour && seconds % hour == 0 && day % seconds == 0) {
        return "0 */" + std::to_string(seconds / hour) + " * * *";
    }
    if (seconds >= minute && seconds % minute == 0 && hour % seconds == 0) {
        return "*/" + std::to_string(seconds / minute) + " * * * *";
    }
    pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "idempotency.cleanup_interval has no cron schedule",
             "It is " + std::to_string(seconds) +
                 " seconds; a schedule needs minutes that divide an hour or hours that divide a day.",
             "Set it to 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes, or to 1, 2, 3, 4, 6, 8, 12 or 24 hours.");
}

}  // namespace

Datum schedule_cleanup(FunctionCallInfo fcinfo) {
    const pg::Spi spi;
    require_pg_cron();
    const std::string command = "CALL " + quoted_schema(fcinfo->flinfo->fn_oid) + ".idempotency_cleanup()";
    const auto job =
        run("SELECT cron.schedule($1, $2, $3)", {job_name, schedule_of(settings::cleanup_interval), command});
    return job.value_or(Int64GetDatum(0));
}

Datum unschedule_cleanup(FunctionCallInfo) {
    const pg::Spi spi;
    require_pg_cron();
    const bool scheduled = run("SELECT true FROM cron.job WHERE jobname OPERATOR(pg_catalog.=) $1"
                               " AND username OPERATOR(pg_catalog.=) CURRENT_USER",
                               {job_name})
                               .has_value();
    if (scheduled) {
        run("SELECT cron.unschedule($1)", {job_name});
    }
    return BoolGetDatum(scheduled);
}

}  // namespace idempotency
