// Canonical JSON and the fingerprint as SQL functions, on the core that the shim uses too.
// Called by the entry points idempotency_fingerprint and idempotency_canonical_json, and by begin_request.
#include "fingerprint.hpp"

#include <string>

#include "core/fingerprint.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

/// Long documents stop for a query cancel or a shutdown.
bool cancel_pending() { return QueryCancelPending != 0 || ProcDiePending != 0; }

constexpr CanonicalJsonOptions cancellable{.exact_numbers = false, .cancelled = cancel_pending};

/// Runs `work` until it was not cancelled. A cancel that the server does not act on just now (it holds interrupts off) stops nothing.
template <typename Work>
auto uncancelled(Work work) {
    auto [cancelled, result] = work(cancellable);
    if (cancelled) {
        pg::check_for_interrupts();
        return work(CanonicalJsonOptions{}).second;
    }
    return result;
}

int sqlstate_of(CanonicalJsonError error) {
    switch (error) {
        case CanonicalJsonError::duplicate_member:
            return ERRCODE_DUPLICATE_JSON_OBJECT_KEY_VALUE;
        case CanonicalJsonError::invalid_utf8:
            return ERRCODE_CHARACTER_NOT_IN_REPERTOIRE;
        case CanonicalJsonError::lone_surrogate:
            return ERRCODE_UNTRANSLATABLE_CHARACTER;
        case CanonicalJsonError::number_out_of_range:
        case CanonicalJsonError::number_not_exact:
            return ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
        case CanonicalJsonError::nesting_too_deep:
            return ERRCODE_STATEMENT_TOO_COMPLEX;
        default:
            return ERRCODE_INVALID_JSON_TEXT;
    }
}

}  // namespace

Datum fingerprint_of(const pg::Arguments& arguments, int first_index) {
    const std::string_view method = arguments.bytes(first_index, "method");
    const std::string_view path = arguments.bytes(first_index + 1, "path");
    const std::string_view body = arguments.bytes_or_empty(first_index + 2);
    if (method.empty()) {
        pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "method must not be empty", "The fingerprint covers the method.",
                 "Pass the request's method, such as 'POST'.");
    }
    if (!path.starts_with('/') || path.find_first_of("?#") != std::string_view::npos) {
        pg::fail(
            ERRCODE_INVALID_PARAMETER_VALUE, "path must be an absolute path without query",
            "The fingerprint covers the escaped path as the client sent it, from the first slash to the question mark.",
            "Pass a path such as '/api/v1/orders'.");
    }
    Fingerprinter fingerprinter;
    const auto value = uncancelled([&](const CanonicalJsonOptions& options) {
        const auto computed = fingerprinter.compute(method, path, body, options);
        return std::pair(!computed.has_value(), computed);
    });
    if (!value) {
        pg::fail(ERRCODE_INTERNAL_ERROR, "could not compute SHA-256", "The OpenSSL library refused.");
    }
    return pg::bytea_datum({reinterpret_cast<const char*>(value->data()), value->size()});
}

Datum fingerprint(FunctionCallInfo fcinfo) { return fingerprint_of(pg::Arguments(fcinfo), 0); }

Datum canonical_json(FunctionCallInfo fcinfo) {
    const std::string_view document = pg::Arguments(fcinfo).bytes(0, "document");
    const char* const utf8 =
        pg::call([&] { return pg_server_to_any(document.data(), static_cast<int>(document.size()), PG_UTF8); });
    const std::string_view converted = utf8 == document.data() ? document : std::string_view(utf8);
    CanonicalJson canonical_json;
    std::string canonical;
    const CanonicalJsonError error = uncancelled([&](const CanonicalJsonOptions& options) {
        const auto found = canonical_json.write(converted, canonical, options);
        return std::pair(found == CanonicalJsonError::cancelled, found);
    });
    if (error != CanonicalJsonError::none) {
        pg::fail(
            sqlstate_of(error), "document has no canonical form",
            "At byte " + std::to_string(canonical_json.error_offset()) + ": " + std::string(to_string(error)) + ".",
            "A fingerprint covers the raw bytes of such a body.");
    }
    if (canonical.size() > MaxAllocSize - VARHDRSZ) {
        pg::fail(ERRCODE_PROGRAM_LIMIT_EXCEEDED, "canonical form is too large",
                 "It has " + std::to_string(canonical.size()) + " bytes; a value of the server holds less than 1 GB.",
                 "idempotency_fingerprint takes such a body: it returns the hash only.");
    }
    const char* const result =
        pg::call([&] { return pg_any_to_server(canonical.data(), static_cast<int>(canonical.size()), PG_UTF8); });
    return pg::text_datum(result == canonical.data() ? std::string_view(canonical) : std::string_view(result));
}

}  // namespace idempotency
