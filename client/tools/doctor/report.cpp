// The doctor's output and exit status.
// Called by idempotency_doctor.cpp.
#include "report.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

namespace doctor {
namespace {

struct StatusText {
    const char* word;
    int exit_status;
};

constexpr std::array<StatusText, 4> status_texts{{{"ok", 0}, {"unknown", 3}, {"warning", 1}, {"critical", 2}}};

const StatusText& text_of(Status status) { return status_texts[static_cast<std::size_t>(status)]; }

Status worst(const std::vector<Finding>& findings) {
    Status worst = Status::ok;
    for (const Finding& finding : findings) {
        worst = std::max(worst, finding.status);
    }
    return worst;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream input(text);
    for (std::string line; std::getline(input, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// Messages of the server and of libpq may have several lines.
std::string in_one_line(std::string text) {
    std::ranges::replace(text, '\n', ' ');
    return text;
}

}  // namespace

void write_text(std::ostream& out, const std::vector<Finding>& findings) {
    out << text_of(worst(findings)).word << ':';
    const char* separator = " ";
    for (const Status status : {Status::critical, Status::warning, Status::unknown, Status::ok}) {
        out << separator << std::ranges::count(findings, status, &Finding::status) << ' ' << text_of(status).word;
        separator = ", ";
    }
    out << '\n';
    for (const Finding& finding : findings) {
        out << std::left << std::setw(9) << text_of(finding.status).word << std::setw(13) << finding.check << ' '
            << in_one_line(finding.found) << '\n';
        for (const std::string& line : lines_of(finding.remedy)) {
            out << "    " << line << '\n';
        }
    }
}

void write_json(std::ostream& out, const std::vector<Finding>& findings) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) {
        list.push_back({{"check", finding.check},
                        {"status", text_of(finding.status).word},
                        {"found", finding.found},
                        {"remedy", lines_of(finding.remedy)}});
    }
    out << nlohmann::ordered_json{{"status", text_of(worst(findings)).word}, {"findings", list}}.dump(2) << '\n';
}

int exit_status(const std::vector<Finding>& findings) { return text_of(worst(findings)).exit_status; }

}  // namespace doctor
