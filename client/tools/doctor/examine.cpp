// Runs the checks on one database, each in a read-only transaction of its own.
// Called by idempotency_doctor.cpp.
#include "examine.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "idempotency/connection.hpp"
#include "idempotency/error.hpp"
#include "idempotency/unit_of_work.hpp"

namespace doctor {
namespace {

using idempotency::Error;
using idempotency::Parameter;
using idempotency::Result;
using idempotency::Transaction;

constexpr std::string_view insufficient_privilege = "42501";
constexpr std::string_view undefined_table = "42P01";

/// Rights and remedies name the extension's schema and the role.
constexpr std::string_view names_sql = R"(
SELECT quote_ident(n.nspname), quote_ident(CURRENT_USER), to_regclass(format('%I.idempotency_keys', n.nspname)) IS NOT NULL, current_database(),
  current_setting('server_version_num')::integer / 10000
FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_idempotency' AND has_schema_privilege(n.oid, 'USAGE'))";

struct Names {
    std::string schema;
    std::string role;
    bool has_table = false;
    std::string database;
    std::string server_version;
};

std::string text(const Result& result, std::size_t row, std::size_t column) {
    return std::string(result.get(row, column).value_or(""));
}

class Database {
public:
    explicit Database(const std::string& conninfo) : pool_(conninfo, 1), unit_of_work_(pool_, options()) {}

    /// Runs statements in one read-only transaction.
    /// @param search_path behind pg_catalog, quoted
    /// @return the rows of the last one
    Result read(std::string_view sql, const std::vector<Parameter>& parameters, const std::string& search_path = {},
                std::string_view before = {}) {
        std::optional<Result> result;
        unit_of_work_.run([&](Transaction& transaction) {
            transaction.execute("SET TRANSACTION READ ONLY");
            transaction.execute(
                "SELECT set_config('statement_timeout', '10s', true), set_config('search_path', $1, true)",
                {"pg_catalog, " + (search_path.empty() ? "" : search_path + ", ") + "pg_temp"});
            // The unit of work set these for its transaction; a check wants to see the server's.
            transaction.execute("SET LOCAL idempotency.require_complete TO DEFAULT");
            transaction.execute("SET LOCAL lock_timeout TO DEFAULT");
            if (!before.empty()) {
                transaction.execute(before);
            }
            result = transaction.execute(whole(sql), parameters);
        });
        return *result;
    }

private:
    static idempotency::UnitOfWorkOptions options() {
        idempotency::UnitOfWorkOptions options;
        options.tx_retry_max = 0;
        options.prepared_statements = false;
        return options;
    }

    idempotency::Pool pool_;
    idempotency::UnitOfWork unit_of_work_;
};

Status status_of(std::string_view word) {
    return word == "ok"         ? Status::ok
           : word == "warning"  ? Status::warning
           : word == "critical" ? Status::critical
                                : Status::unknown;
}

/// An ok counts when nothing else was found.
std::vector<Finding> findings_of(const Check& check, const Result& result) {
    std::vector<Finding> findings;
    for (std::size_t row = 0; row < result.rows(); ++row) {
        findings.push_back(
            {std::string(check.name), status_of(text(result, row, 0)), text(result, row, 1), text(result, row, 2)});
    }
    const auto is_ok = [](const Finding& finding) { return finding.status == Status::ok; };
    if (!std::ranges::all_of(findings, is_ok)) {
        std::erase_if(findings, is_ok);
    }
    return findings;
}

Finding could_not_look(const Check& check, const Error& error, const Names& names) {
    const bool lacks_right = error.sqlstate() == insufficient_privilege;
    return {std::string(check.name), Status::unknown, error.what(),
            lacks_right ? replaced(replaced(check.rights, "{schema}", names.schema), "{role}", names.role) : ""};
}

/// Calling any function of the extension loads its library; which one this role may call is found by trying.
constexpr std::string_view loaders[] = {"SELECT idempotency_canonical_json('{}')", "SELECT idempotency_stats()", ""};

bool was_cancelled(const Error& error) { return error.sqlstate().starts_with("57"); }

/// The server has no library, or one that does not fit it: class 58, XX000.
bool is_unusable_library(const Error& error) {
    return error.sqlstate().starts_with("58") || error.sqlstate().starts_with("XX");
}

std::vector<Finding> look(Database& database, const Check& check, const Names& names) {
    const std::string search_path = check.in_schema ? names.schema : "";
    if (!check.loads_library) {
        return findings_of(check, database.read(check.sql, check.parameters, search_path));
    }
    std::optional<Error> first_error;
    for (const std::string_view loader : loaders) {
        try {
            return findings_of(check, database.read(check.sql, check.parameters, search_path, loader));
        } catch (const idempotency::Unavailable&) {
            throw;
        } catch (const Error& error) {
            if (was_cancelled(error)) {
                throw;
            }
            if (is_unusable_library(error)) {
                return {{std::string(check.name), Status::critical, error.what(),
                         "$ sudo apt install --reinstall postgresql-" + names.server_version + "-pg-idempotency"}};
            }
            first_error = first_error.value_or(error);
        }
    }
    throw Error(*first_error);
}

/// The jobs may be in another database.
std::vector<Finding> look_for_job(Database& database, const Check& check, const Names& names,
                                  const std::string& conninfo) {
    const Result place = database.read(check.sql, {});
    if (place.rows() == 0 || text(place, 0, 0) != "look in") {
        return findings_of(check, place);
    }
    const std::string cron_database = text(place, 0, 1);
    const std::string schedule = text(place, 0, 2);
    const std::vector<Parameter> parameters{names.database, schedule, text(place, 0, 4)};
    if (cron_database == names.database) {
        return findings_of(check, database.read(cron_job_sql, parameters));
    }
    std::vector<Finding> findings;
    try {
        Database elsewhere(conninfo_for(conninfo, cron_database));
        findings = findings_of(check, elsewhere.read(cron_job_sql, parameters));
    } catch (const Error& error) {
        findings = {could_not_look(check, error, names)};
        findings[0].found = "in the database " + cron_database + ", where pg_cron keeps its jobs: " + error.what();
        if (error.sqlstate() == undefined_table) {
            findings = {{std::string(check.name), Status::warning,
                         "pg_cron is loaded, but not created in " + cron_database +
                             ", which cron.database_name names: nothing calls the cleanup, unless you do",
                         schedule}};
            findings[0].remedy.insert(0, "CREATE EXTENSION pg_cron;\n");
        }
    }
    for (Finding& finding : findings) {
        if (!finding.remedy.empty()) {
            finding.remedy = "\\connect " + text(place, 0, 3) + "\n" + finding.remedy;
        }
    }
    return findings;
}

}  // namespace

std::string conninfo_for(const std::string& conninfo, const std::string& database) {
    if (conninfo.starts_with("postgres://") || conninfo.starts_with("postgresql://")) {
        constexpr std::string_view hex = "0123456789ABCDEF";
        std::string escaped;
        for (const char c : database) {
            const auto byte = static_cast<unsigned char>(c);
            escaped += '%';
            escaped += hex[byte >> 4];
            escaped += hex[byte & 0x0F];
        }
        return conninfo + (conninfo.find('?') == std::string::npos ? '?' : '&') + "dbname=" + escaped;
    }
    std::string quoted;
    for (const char c : database) {
        quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return conninfo + " dbname='" + quoted + "'";
}

std::vector<Check> all_checks(const Options& options) {
    std::vector<Check> checks = installation_checks();
    for (const auto& more : {configuration_checks(), cleanup_checks(), running_checks(options.patience)}) {
        checks.insert(checks.end(), more.begin(), more.end());
    }
    return checks;
}

std::vector<Finding> examine(const Options& options) {
    std::vector<Finding> findings;
    Database database(options.conninfo);
    std::optional<Names> names;
    try {
        const Result result = database.read(names_sql, {});
        if (result.rows() > 0) {
            names = {text(result, 0, 0), text(result, 0, 1), text(result, 0, 2) == "t", text(result, 0, 3),
                     text(result, 0, 4)};
        }
        for (const Check& check : all_checks(options)) {
            const bool makes_sense =
                check.needs == Needs::nothing || (names && (check.needs == Needs::extension || names->has_table));
            if (!makes_sense || std::ranges::count(options.skipped, check.name) > 0) {
                continue;
            }
            try {
                const auto found = check.sql == cron_place_sql ? look_for_job(database, check, *names, options.conninfo)
                                                               : look(database, check, names.value_or(Names{}));
                findings.insert(findings.end(), found.begin(), found.end());
            } catch (const idempotency::Unavailable&) {
                throw;
            } catch (const Error& error) {
                findings.push_back(could_not_look(check, error, names.value_or(Names{})));
            }
        }
    } catch (const Error& error) {
        findings.push_back(
            {"connection", Status::unknown, error.what(), "$ pg_isready --dbname \"$CONNINFO\"\n$ psql \"$CONNINFO\""});
    }
    return findings;
}

}  // namespace doctor
