// idempotency-doctor: looks at one database and says what is wrong with its key store, and what to type.
// Called by people and by monitoring.
#include <CLI/CLI.hpp>
#include <iostream>

#include "doctor/examine.hpp"
#include "doctor/report.hpp"

namespace {

constexpr int exit_unknown = 3;  // to monitoring, wrong arguments are a check that could not look

std::string list_of_checks() {
    std::string text = "Checks:\n";
    for (const doctor::Check& check : doctor::all_checks({})) {
        std::string name(check.name);
        name.resize(14, ' ');
        text += "  " + name + std::string(check.about) + "\n";
    }
    return text +
           "Beneath a problem is what to type: lines with $ in a shell, the others in psql, as a superuser unless the manual page says less. \"$CONNINFO\" "
           "stands for the connection string.\n"
           "Exit status, as of monitoring plugins: 0 ok, 1 warning, 2 critical, 3 unknown (no connection, no right, wrong arguments).";
}

}  // namespace

int main(int argc, char** argv) try {
    CLI::App app(
        "Looks at a database and says what is wrong with its idempotency keys, and what to type. It changes nothing.",
        "idempotency-doctor");
    doctor::Options options;
    bool json = false;
    int patience = static_cast<int>(options.patience.count());
    std::vector<std::string> names;
    for (const doctor::Check& check : doctor::all_checks(options)) {
        names.emplace_back(check.name);
    }
    app.add_option("--conninfo", options.conninfo,
                   "connection string or URI; when left out, libpq's environment variables");
    app.add_option("--skip", options.skipped, "a check to leave out; may be repeated")
        ->allow_extra_args(false)
        ->check(CLI::IsMember(names).description("CHECK"));
    app.add_option("--patience", patience, "seconds that a wait, an idle transaction or a key in progress may last")
        ->check(CLI::Range(0, 86400).description("SECONDS"))
        ->capture_default_str();
    app.add_flag("--json", json, "write JSON");
    app.set_version_flag("--version", "idempotency-doctor " IDEMPOTENCY_VERSION);
    app.footer(list_of_checks());
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& shown) {
        return app.exit(shown);
    } catch (const CLI::ParseError& error) {
        std::cerr << "idempotency-doctor: " << error.what() << "\n\n" << app.help();
        return exit_unknown;
    }
    options.patience = std::chrono::seconds(patience);
    const std::vector<doctor::Finding> findings = doctor::examine(options);
    json ? doctor::write_json(std::cout, findings) : doctor::write_text(std::cout, findings);
    return doctor::exit_status(findings);
} catch (const std::exception& error) {
    std::cerr << "idempotency-doctor: " << error.what() << "\n";
    return exit_unknown;
}
