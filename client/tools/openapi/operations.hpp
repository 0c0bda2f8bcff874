// The operations of a description, as the stage and the rules want to know them.
// Used by the rules and by the output of idempotency-openapi.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "description.hpp"

namespace openapi {

struct Parameter {
    std::string name;
    std::string in;  ///< query, header, path or cookie
    bool required = false;
    Place place;
};

struct ApiResponse {
    std::string status;  ///< "201", "2XX" or "default"
    Node node;

    [[nodiscard]] bool success() const { return status.starts_with('2'); }
    /// The header of this name, compared without case; a missing node when it is not declared.
    [[nodiscard]] Node header(std::string_view name) const;
};

struct ApiOperation {
    std::string method;  ///< upper case
    std::string path;    ///< the template
    Place place;
    std::string id;      ///< operationId
    std::string action;  ///< x-authz-action, else the operationId
    std::vector<Parameter> parameters;
    Node body;
    std::vector<ApiResponse> responses;
    bool keyed = false;
    bool key_required = false;
    std::size_t body_limit = 0;  ///< x-body-limit, bytes; 0: not given

    /// The statuses whose success response declares ETag. A range counts as 200, 201 and 202.
    [[nodiscard]] std::vector<int> etag_statuses() const;
};

/// @throws Unusable
[[nodiscard]] std::vector<ApiOperation> operations_of(Description& description);

}  // namespace openapi
