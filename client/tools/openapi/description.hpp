// An OpenAPI description as it stands in its files: nodes that know their place, and references that are followed.
// Used by the operations and the rules of idempotency-openapi.
#pragma once

#include <yaml-cpp/yaml.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace openapi {

/// Where something stands. Lines count from 1; 0: the file as a whole.
struct Place {
    std::string file;
    int line = 0;

    [[nodiscard]] std::string to_string() const { return line > 0 ? file + ":" + std::to_string(line) : file; }
};

/// The description cannot be used: the message says where, what and how to mend.
class Unusable : public std::runtime_error {
public:
    Unusable(const Place& place, const std::string& what) : std::runtime_error(place.to_string() + ": " + what) {}
};

class Description;

/// A node with its file. A missing node is false and has the place of the node that it was looked for in.
class Node {  // NOLINT(bugprone-exception-escape): yaml-cpp's nodes are copied where others move
public:
    Node(Description& description, const YAML::Node& node, Place place)
        : description_(&description), node_(node), place_(std::move(place)) {}

    explicit operator bool() const { return node_.IsDefined() && !node_.IsNull(); }
    [[nodiscard]] const Place& place() const noexcept { return place_; }
    [[nodiscard]] bool is_map() const { return node_.IsDefined() && node_.IsMap(); }

    /// A member of a mapping, with its $ref followed.
    [[nodiscard]] Node operator[](const std::string& name) const;
    /// The members of a mapping, in their order, with their $refs followed. Empty for anything else.
    [[nodiscard]] std::vector<std::pair<std::string, Node>> members() const;
    /// The elements of a sequence, with their $refs followed. Empty for anything else.
    [[nodiscard]] std::vector<Node> elements() const;
    /// The text of a scalar; empty for anything else.
    [[nodiscard]] std::string text() const;
    /// A boolean; `otherwise` when it is not there.
    [[nodiscard]] bool boolean(bool otherwise) const;
    /// What tells one node from another, however it was reached.
    [[nodiscard]] std::string identity() const { return place_.file + ":" + std::to_string(node_.Mark().pos); }

private:
    [[nodiscard]] Node child(const YAML::Node& node) const;

    Description* description_;
    YAML::Node node_;
    Place place_;
};

/// A description with the files that it refers to.
class Description {
public:
    /// Reads an OpenAPI 3.0 or 3.1 description, YAML or JSON.
    /// @throws Unusable when it is none
    explicit Description(std::string file);
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;
    ~Description() = default;

    [[nodiscard]] Node root() { return root_of(file_); }

    /// Follows the $ref of a node, and the next ones, in this file or in one beside it.
    /// @throws Unusable for a cycle, a target that is not there, or one on another host
    [[nodiscard]] Node followed(const Node& node, const YAML::Node& raw);

private:
    [[nodiscard]] Node root_of(const std::string& file);

    std::string file_;
    std::map<std::string, YAML::Node> files_;
};

}  // namespace openapi
