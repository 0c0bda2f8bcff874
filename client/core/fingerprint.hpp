// The fingerprint of a request: what decides between a replay and a reused key.
// Used by the extension, the shim, the C interface and idempotency-fingerprint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "canonical_json.hpp"  // beside this file, in the source tree and installed

namespace idempotency {

/// A SHA-256 value, 32 bytes: the column request_sha256.
using Fingerprint = std::array<std::uint8_t, 32>;

/// Computes fingerprints: SHA-256 over the upper-case method, LF, the escaped path without query, LF, and the
/// canonical body (the seed's "Fingerprint"). Canonical body: RFC 8785 when the body has a canonical form, the raw bytes
/// otherwise, empty when there is no body. Keeps its buffers; one object a thread.
class Fingerprinter {
public:
    /// @param method any case, e.g. "POST"
    /// @param path   escaped, as sent, without query, e.g. "/api/v1/orders"
    /// @param body   the whole body; empty when there is none
    /// @return the fingerprint, or nothing when options.cancelled asked to stop or OpenSSL failed
    [[nodiscard]] std::optional<Fingerprint> compute(std::string_view method, std::string_view path,
                                                     std::string_view body, const CanonicalJsonOptions& options = {});

    /// The same with HMAC-SHA-256 (RFC 2104) under `hmac_key` in place of SHA-256, so that the stored value of a short body is no
    /// oracle for who does not hold the key.
    [[nodiscard]] std::optional<Fingerprint> compute_keyed(std::string_view hmac_key, std::string_view method,
                                                           std::string_view path, std::string_view body,
                                                           const CanonicalJsonOptions& options = {});

    /// Why the last body had no canonical form, `none` when it had one or was empty.
    [[nodiscard]] CanonicalJsonError body_error() const noexcept { return body_error_; }

private:
    [[nodiscard]] std::optional<std::string_view> canonical_body(std::string_view body,
                                                                 const CanonicalJsonOptions& options);

    CanonicalJson canonical_json_;
    std::string canonical_body_;
    CanonicalJsonError body_error_ = CanonicalJsonError::none;
};

}  // namespace idempotency
