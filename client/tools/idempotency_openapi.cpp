// idempotency-openapi: checks how an OpenAPI description declares idempotent operations, and writes the table that the stage runs on.
// Called by people and CI.
#include <CLI/CLI.hpp>
#include <iostream>

#include "openapi/output.hpp"

namespace {

using openapi::Severity;

constexpr int exit_findings = 1;
constexpr int exit_unusable = 2;

struct Arguments {
    std::vector<std::string> files;
    std::string format = "text";
    std::vector<std::string> rules;
    std::string file;
    bool cpp = false;
    std::string namespace_name = "operations";
};

/// "name=off", "name=warning" or "name=error".
std::map<std::string, Severity> severities_of(const std::vector<std::string>& settings) {
    static const std::map<std::string, Severity> words{
        {"off", Severity::off}, {"warning", Severity::warning}, {"error", Severity::error}};
    std::map<std::string, Severity> severities;
    for (const std::string& setting : settings) {
        const std::size_t equals = std::min(setting.find('='), setting.size());
        const std::string name = setting.substr(0, equals);
        const auto word = words.find(equals < setting.size() ? setting.substr(equals + 1) : "");
        const bool known = std::ranges::any_of(openapi::rules(), [&](const auto& rule) { return rule.name == name; });
        if (!known || word == words.end()) {
            throw CLI::ValidationError("--rule " + setting, known ? "write off, warning or error behind the ="
                                                                  : "there is no rule of this name");
        }
        severities[name] = word->second;
    }
    return severities;
}

int lint(const Arguments& arguments) {
    const std::map<std::string, Severity> severities = severities_of(arguments.rules);
    std::vector<openapi::Finding> findings;
    for (const std::string& file : arguments.files) {
        openapi::Description description(file);
        const auto found = openapi::check(openapi::operations_of(description), severities);
        findings.insert(findings.end(), found.begin(), found.end());
    }
    if (arguments.format == "json") {
        openapi::write_json(std::cout, findings);
    } else if (arguments.format == "sarif") {
        openapi::write_sarif(std::cout, findings);
    } else {
        openapi::write_text(std::cout, findings);
    }
    return findings.empty() ? 0 : exit_findings;
}

int operations(const Arguments& arguments) {
    openapi::Description description(arguments.file);
    const std::vector<openapi::ApiOperation> found = openapi::operations_of(description);
    std::ostringstream out;  // nothing is written when something is wrong
    if (arguments.cpp) {
        const std::size_t slash = arguments.file.rfind('/');
        openapi::write_cpp(out, found, arguments.file.substr(slash == std::string::npos ? 0 : slash + 1),
                           arguments.namespace_name);
    } else {
        openapi::write_operations(out, found);
    }
    std::cout << out.str();
    return 0;
}

std::string list_of_rules() {
    std::string text = "Rules:\n";
    for (const openapi::Rule& rule : openapi::rules()) {
        std::string name(rule.name);
        name.resize(22, ' ');
        text += "  " + name + (rule.severity == Severity::error ? "error    " : "warning  ") +
                std::string(rule.summary) + "\n";
    }
    return text + "Exit status: 0 clean, 1 findings, 2 unusable input or wrong arguments.";
}

}  // namespace

int main(int argc, char** argv) try {
    Arguments arguments;
    CLI::App app("Checks how an OpenAPI description declares idempotent operations, and writes their table.",
                 "idempotency-openapi");
    app.require_subcommand(1);
    CLI::App* const lint_command = app.add_subcommand("lint", "check every operation that declares Idempotency-Key");
    lint_command->add_option("FILE", arguments.files, "OpenAPI 3.0 or 3.1, YAML or JSON")->required();
    lint_command->add_option("--format", arguments.format, "text, json or sarif")
        ->check(CLI::IsMember({"text", "json", "sarif"}))
        ->capture_default_str();
    lint_command->add_option("--rule", arguments.rules, "NAME=off, NAME=warning or NAME=error; may be repeated")
        ->allow_extra_args(false);
    lint_command->footer(list_of_rules());
    CLI::App* const operations_command = app.add_subcommand("operations", "write the operations table as JSON");
    operations_command->add_option("FILE", arguments.file, "OpenAPI 3.0 or 3.1, YAML or JSON")->required();
    operations_command->add_flag("--cpp", arguments.cpp, "write a C++ header with the same as constants");
    operations_command->add_option("--namespace", arguments.namespace_name, "of the constants")->capture_default_str();
    try {
        app.parse(argc, argv);
        return lint_command->parsed() ? lint(arguments) : operations(arguments);
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        app.exit(error);
        std::cerr << (lint_command->parsed()         ? lint_command
                      : operations_command->parsed() ? operations_command
                                                     : &app)
                         ->help();
        return exit_unusable;
    }
} catch (const std::exception& error) {  // openapi::Unusable as well
    std::cerr << "idempotency-openapi: " << error.what() << '\n';
    return exit_unusable;
}
