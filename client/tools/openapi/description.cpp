// Reading OpenAPI descriptions with yaml-cpp, which reads JSON too and keeps line numbers.
// Called by idempotency-openapi.
#include "description.hpp"

#include <filesystem>
#include <fstream>
#include <cstdio>
#include <iterator>
#include <regex>
#include <set>

namespace openapi {
namespace {

constexpr int most_references_in_a_row = 100;
constexpr int deepest_nesting = 200;

Place place_of(const std::string& file, const YAML::Node& node) {
    return {file, node.IsDefined() && node.Mark().line >= 0 ? node.Mark().line + 1 : 0};
}

std::string read(const std::string& file) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
        throw Unusable({file}, "is a folder; name a file");
    }
    std::ifstream input(file, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(input), {});
    if (!input) {
        throw Unusable({file}, "cannot be read");
    }
    return text;
}

/// Every mapping names each member once. Aliases are looked at once, so that a file cannot make us walk for ever.
// NOLINTNEXTLINE(misc-no-recursion): no deeper than deepest_nesting
void check_names(const std::string& file, const YAML::Node& node, std::set<std::size_t>& seen, int depth) {
    if (depth > deepest_nesting) {
        throw Unusable(place_of(file, node), "is nested deeper than " + std::to_string(deepest_nesting) + " levels");
    }
    if (!(node.IsMap() || node.IsSequence()) || !seen.insert(static_cast<std::size_t>(node.Mark().pos)).second) {
        return;
    }
    if (node.IsSequence()) {
        for (const YAML::Node& element : node) {
            check_names(file, element, seen, depth + 1);
        }
        return;
    }
    std::set<std::string> names;
    for (const auto& member : node) {
        if (!member.first.IsScalar()) {
            throw Unusable(place_of(file, member.first), "a mapping's member has no name");
        }
        if (!names.insert(member.first.Scalar()).second) {
            throw Unusable(place_of(file, member.first),
                           "the member \"" + member.first.Scalar() + "\" is there twice; keep one of them");
        }
        check_names(file, member.second, seen, depth + 1);
    }
}

/// JSON writes a character beyond U+FFFF as two escapes, a surrogate pair; YAML knows one escape for it, of the same meaning.
std::string with_joined_surrogates(const std::string& text) {
    static const std::regex pair(R"(\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2}))");
    std::string joined;
    auto rest = text.cbegin();
    for (std::smatch found; std::regex_search(rest, text.cend(), found, pair); rest = found[0].second) {
        joined.append(rest, found[0].first);
        const std::size_t before = joined.find_last_not_of('\\') + 1;  // 0 when there is nothing else
        const bool escaped = (joined.size() - before) % 2 == 1;
        if (escaped) {
            joined.append(found[0].first, found[0].second);  // a backslash and the letter u
            continue;
        }
        const unsigned long code_point = 0x10000 + ((std::stoul(found.str(1), nullptr, 16) - 0xD800) << 10) +
                                         (std::stoul(found.str(2), nullptr, 16) - 0xDC00);
        char escape[12];
        (void)std::snprintf(escape, sizeof escape, "\\U%08lx", code_point);
        joined += escape;
    }
    return joined.append(rest, text.cend());
}

YAML::Node parse(const std::string& file) {
    const std::string text = with_joined_surrogates(read(file));
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
        throw Unusable({file}, "is empty");
    }
    try {
        YAML::Node node = YAML::Load(text);
        if (node.IsNull()) {
            throw Unusable({file}, "is empty");
        }
        std::set<std::size_t> seen;
        check_names(file, node, seen, 0);
        return node;
    } catch (const YAML::Exception& error) {
        throw Unusable({file, error.mark.line >= 0 ? error.mark.line + 1 : 0},
                       "is not YAML or JSON: " + error.msg +
                           (text.find("\n\t") != std::string::npos ? "; indent with spaces, not tabs" : ""));
    }
}

/// One step of a JSON pointer: %XX, then ~1 and ~0 (RFC 6901 sections 3 and 6).
std::string unescaped(std::string_view step) {
    std::string text;
    for (std::size_t i = 0; i < step.size(); ++i) {
        const auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
        if (step[i] == '%' && i + 2 < step.size() && hex(step[i + 1]) && hex(step[i + 2])) {
            text += static_cast<char>(std::stoi(std::string(step.substr(i + 1, 2)), nullptr, 16));
            i += 2;
        } else {
            text += step[i];
        }
    }
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '~' && i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1');
        result += escape ? (text[++i] == '0' ? '~' : '/') : text[i];
    }
    return result;
}

YAML::Node at(YAML::Node node, std::string_view pointer) {
    while (!pointer.empty() && node.IsDefined()) {
        pointer.remove_prefix(1);
        const std::size_t end = std::min(pointer.find('/'), pointer.size());
        const std::string step = unescaped(pointer.substr(0, end));
        pointer.remove_prefix(end);
        const YAML::Node here = node;
        if (here.IsMap()) {
            const YAML::Node next = here[step];
            if (!next.IsDefined()) {
                return next;
            }
            node.reset(next);
        } else if (here.IsSequence() && !step.empty() && step.find_first_not_of("0123456789") == std::string::npos &&
                   step.size() < 8) {
            const YAML::Node next = here[std::stoul(step)];
            if (!next.IsDefined()) {
                return next;
            }
            node.reset(next);
        } else {
            return YAML::Node(YAML::NodeType::Undefined);
        }
    }
    return node;
}

}  // namespace

Node Node::child(const YAML::Node& node) const {
    Place place = place_of(place_.file, node);
    if (place.line == 0) {
        place = place_;
    }
    return description_->followed(Node(*description_, node, place), node);
}

Node Node::operator[](const std::string& name) const {
    const YAML::Node& here = node_;
    return is_map() && here[name].IsDefined() ? child(here[name])
                                              : Node(*description_, YAML::Node(YAML::NodeType::Null), place_);
}

std::vector<std::pair<std::string, Node>> Node::members() const {
    std::vector<std::pair<std::string, Node>> result;
    if (is_map()) {
        for (const auto& member : node_) {
            result.emplace_back(member.first.Scalar(), child(member.second));
        }
    }
    return result;
}

std::vector<Node> Node::elements() const {
    std::vector<Node> result;
    if (node_.IsDefined() && node_.IsSequence()) {
        for (const YAML::Node& element : node_) {
            result.push_back(child(element));
        }
    }
    return result;
}

std::string Node::text() const { return node_.IsDefined() && node_.IsScalar() ? node_.Scalar() : ""; }

bool Node::boolean(bool otherwise) const {
    bool value = otherwise;
    return node_.IsDefined() && YAML::convert<bool>::decode(node_, value) ? value : otherwise;
}

Description::Description(std::string file) : file_(std::move(file)) {
    const Node description = root();
    if (!description.is_map()) {
        throw Unusable(description.place(), "is no OpenAPI description: its top is not a mapping");
    }
    if (description["swagger"]) {
        throw Unusable(description["swagger"].place(),
                       "is a Swagger " + description["swagger"].text() + " description; convert it to OpenAPI 3");
    }
    const std::string version = description["openapi"].text();
    if (version.empty()) {
        throw Unusable(description.place(), "is no OpenAPI description: it has no member \"openapi\"");
    }
    if (!version.starts_with("3.0.") && !version.starts_with("3.1.")) {
        throw Unusable(description["openapi"].place(),
                       "has the OpenAPI version " + version + "; 3.0 and 3.1 are known");
    }
    if (!description["paths"].is_map() && !description["webhooks"] && !description["components"]) {
        throw Unusable(description.place(), "has no \"paths\"");
    }
}

Node Description::root_of(const std::string& file) {
    auto known = files_.find(file);
    if (known == files_.end()) {
        known = files_.emplace(file, parse(file)).first;
    }
    return {*this, known->second, place_of(file, known->second)};
}

Node Description::followed(const Node& node, const YAML::Node& raw) {
    Node current = node;
    YAML::Node target = raw;
    for (int followed_so_far = 0; target.IsDefined() && target.IsMap() && std::as_const(target)["$ref"].IsDefined();
         ++followed_so_far) {
        const YAML::Node reference = std::as_const(target)["$ref"];
        const Place place = place_of(current.place().file, reference);
        if (!reference.IsScalar()) {
            return current;  // a member that is named $ref
        }
        const std::string& text = reference.Scalar();
        if (followed_so_far == most_references_in_a_row) {
            throw Unusable(place, "the reference " + text + " leads back to itself");
        }
        const std::size_t hash = std::min(text.find('#'), text.size());
        const std::string file_part = unescaped(text.substr(0, hash));
        const std::string pointer = hash < text.size() ? text.substr(hash + 1) : "";
        if (file_part.find("://") != std::string::npos || file_part.starts_with("//")) {
            throw Unusable(place, "the reference " + text + " leads to another host; keep a copy beside this file");
        }
        if (!pointer.empty() && pointer.front() != '/') {
            throw Unusable(place, "the reference " + text + " is no JSON pointer; write #/...");
        }
        std::string file = current.place().file;
        if (!file_part.empty()) {
            file = (std::filesystem::path(file).parent_path() / file_part).lexically_normal().string();
            if (!std::filesystem::exists(file)) {
                // NOLINTNEXTLINE(performance-inefficient-string-concatenation): the loop ends here
                throw Unusable(place, "the reference " + text + " leads to " + file + ", which is not there");
            }
        }
        (void)root_of(file);
        const YAML::Node found = at(files_.at(file), pointer);
        if (!found.IsDefined()) {
            throw Unusable(place, "the reference " + text + " leads to nothing");
        }
        target.reset(found);
        current = Node(*this, target, place_of(file, target));
    }
    return current;
}

}  // namespace openapi
