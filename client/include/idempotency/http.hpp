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
    /// Removes every line of `name`.
    void remove(std::string_view name);

    /// The lines as pairs of name and value, in order.
    [[nodiscard]] auto begin() const noexcept { return fields_.begin(); }
    /// One past the last line.
    [[nodiscard]] auto end() const noexcept { return fields_.end(); }

private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

/// A request with its whole body read.
struct Request {
    std::string method;  ///< as sent, e.g. "POST"
    std::string target;  ///< request target as sent: escaped path, perhaps with a query
    Headers headers;     ///< every header line, as sent
    std::string body;    ///< decoded, empty when there is none

    /// The escaped path without the query: what the fingerprint covers.
    [[nodiscard]] std::string_view path() const noexcept;
};

/// An answer with its whole body.
struct Response {
    int status = 200;  ///< HTTP status
    Headers headers;   ///< without Content-Length, which the server adds
    std::string body;  ///< empty for an answer without one

    /// A response with a JSON document as its body.
    [[nodiscard]] static Response json(int status, std::string body);
};

}  // namespace idempotency::http
