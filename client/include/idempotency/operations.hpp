// The operations table of an API: what idempotency-openapi writes from its OpenAPI description, and what the stage runs on.
// Used by applications that route by the table; the generated header of --cpp holds entries of the same type.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "idempotency/stage.hpp"

namespace idempotency {

/// The operations of an API. Immutable; safe to share between threads.
class Operations {
public:
    /// One operation and where it is found.
    struct Entry {
        std::string method;   ///< upper case
        std::string path;     ///< template, e.g. "/api/v1/orders/{id}"
        Operation operation;  ///< for Stage::handle
    };

    /// A table of these entries, for example the generated ones.
    explicit Operations(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    /// Reads a table from a file, the JSON that "idempotency-openapi operations" writes.
    /// @throws std::runtime_error that names the file, the entry and what is wrong with it
    [[nodiscard]] static Operations load(const std::string& file);

    /// Finds the operation of a request. A segment {name} of a template stands for any one segment; a template with a plain segment in
    /// that place wins over it (OpenAPI 3.1 section 4.8.8.2).
    /// @param method as it was sent; methods differ by case
    /// @param path   escaped, as it was sent, with or without query
    /// @return nothing when there is none; valid as long as this object
    [[nodiscard]] const Entry* match(std::string_view method, std::string_view path) const noexcept;

    /// Every entry, in the order of the description.
    [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

private:
    std::vector<Entry> entries_;
};

}  // namespace idempotency
