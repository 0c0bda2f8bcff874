// HTTP requests and responses as plain values, free of any server framework.
// Adapters translate to and from them; the stage and handlers work on them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idempotency::http {

/// Header fields in the order they came. Names compare without case (RFC 9110 section 5.1).
class Headers {
public:
    /// The first value of `name`, or nothing.
    [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
    /// Every value of `name`, one a header line.
    [[nodiscard]] std::vector<std::string_view> all(std::string_view name) const;
    /// Adds a line, beside others of the same name.
    void add(std::string name, std::string value);
    /// Replaces every line of `name` by one.
    void set(std::string name, std::string value);
    void remove(std::string_view name);

    [[nodiscard]] auto begin() const noexcept { return fields_.begin(); }
    [[nodiscard]] auto end() const noexcept { return fields_.end(); }

private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

/// A request with its whole body read.
struct Request {
    std::string method;  ///< as sent, e.g. "POST"
    std::string target;  ///< request target as sent: escaped path, perhaps with a query
    Headers headers;
    std::string body;

    /// The escaped path without the query: what the fingerprint covers.
    [[nodiscard]] std::string_view path() const noexcept;
};

struct Response {
    int status = 200;
    Headers headers;
    std::string body;

    /// A response with a JSON document as its body.
    [[nodiscard]] static Response json(int status, std::string body);
};

}  // namespace idempotency::http
