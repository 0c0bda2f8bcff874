// The operations table: reading it, and finding an operation in it.
// Called by applications.
#include "idempotency/operations.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace idempotency {
namespace {

using nlohmann::json;

/// Takes the first segment, behind a slash, off a path.
std::string_view next_segment(std::string_view& path) noexcept {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

bool is_parameter(std::string_view segment) noexcept { return segment.starts_with('{') && segment.ends_with('}'); }

bool matches(std::string_view path_template, std::string_view path) noexcept {
    while (path_template.starts_with('/') && path.starts_with('/')) {
        const std::string_view expected = next_segment(path_template);
        const std::string_view given = next_segment(path);
        if (is_parameter(expected) ? given.empty() : expected != given) {
            return false;
        }
    }
    return path_template.empty() && path.empty();
}

/// Whether `a`, which matches the same path as `b`, has a plain segment where `b` has a parameter first.
bool more_concrete(std::string_view a, std::string_view b) noexcept {
    while (a.starts_with('/') && b.starts_with('/')) {
        const bool parameter_a = is_parameter(next_segment(a));
        const bool parameter_b = is_parameter(next_segment(b));
        if (parameter_a != parameter_b) {
            return parameter_b;
        }
    }
    return false;
}

Operations::Entry entry_of(const json& node) {
    Operations::Entry entry;
    entry.method = node.at("method").get<std::string>();
    entry.path = node.at("path").get<std::string>();
    entry.operation.action = node.at("action").get<std::string>();
    entry.operation.keyed = node.at("keyed").get<bool>();
    entry.operation.key_required = node.value("key_required", false);
    entry.operation.etag_statuses = node.value("etag_statuses", std::vector<int>());
    entry.operation.body_limit = node.value("body_limit", entry.operation.body_limit);
    if (!entry.path.starts_with('/')) {
        throw std::runtime_error("path must begin with a slash");
    }
    return entry;
}

}  // namespace

Operations Operations::load(const std::string& file) {
    std::ifstream input(file);
    const json table = json::parse(input, nullptr, false);
    if (!table.is_object() || !table.contains("operations") || !table["operations"].is_array()) {
        throw std::runtime_error(file + ": is no operations table; write one with idempotency-openapi operations");
    }
    std::vector<Entry> entries;
    for (const json& node : table["operations"]) {
        try {
            entries.push_back(entry_of(node));
        } catch (const std::exception& error) {
            throw std::runtime_error(file + ": operation " + std::to_string(entries.size() + 1) + ": " + error.what());
        }
    }
    return Operations(std::move(entries));
}

const Operations::Entry* Operations::match(std::string_view method, std::string_view path) const noexcept {
    path = path.substr(0, path.find_first_of("?#"));
    const Entry* best = nullptr;
    for (const Entry& entry : entries_) {
        if (entry.method == method && matches(entry.path, path) &&
            (best == nullptr || more_concrete(entry.path, best->path))) {
            best = &entry;
        }
    }
    return best;
}

}  // namespace idempotency
