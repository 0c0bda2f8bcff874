// The C interface over the core: values in and out, every exception ends here.
// Called by bindings of other languages through idempotency/idempotency.h.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "core/fingerprint.hpp"
#include "core/uuid.hpp"
#include "idempotency/idempotency.h"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;
using idempotency::CanonicalJsonOptions;
using idempotency::Fingerprint;
using idempotency::Fingerprinter;

static_assert(std::tuple_size_v<Fingerprint> == IDEMPOTENCY_FINGERPRINT_SIZE);
static_assert(idempotency::canonical_json_max_depth == 1000, "idempotency.h names the limit");

idempotency_result result_of(CanonicalJsonError error) noexcept {
    switch (error) {
        case CanonicalJsonError::none:
            return IDEMPOTENCY_OK;
        case CanonicalJsonError::not_json:
            return IDEMPOTENCY_NOT_JSON;
        case CanonicalJsonError::duplicate_member:
            return IDEMPOTENCY_DUPLICATE_MEMBER;
        case CanonicalJsonError::invalid_utf8:
            return IDEMPOTENCY_INVALID_UTF8;
        case CanonicalJsonError::lone_surrogate:
            return IDEMPOTENCY_LONE_SURROGATE;
        case CanonicalJsonError::number_out_of_range:
            return IDEMPOTENCY_NUMBER_OUT_OF_RANGE;
        case CanonicalJsonError::number_not_exact:
            return IDEMPOTENCY_NUMBER_NOT_EXACT;
        case CanonicalJsonError::nesting_too_deep:
            return IDEMPOTENCY_NESTING_TOO_DEEP;
        case CanonicalJsonError::cancelled:
            break;  // nothing here can cancel
    }
    return IDEMPOTENCY_NOT_JSON;
}

std::optional<CanonicalJsonOptions> options_of(unsigned flags) noexcept {
    if ((flags & ~IDEMPOTENCY_EXACT_NUMBERS) != 0) {
        return std::nullopt;
    }
    return CanonicalJsonOptions{.exact_numbers = flags != 0, .cancelled = nullptr};
}

std::string_view view_of(const void* bytes, std::size_t size) noexcept {
    return size == 0 ? std::string_view() : std::string_view(static_cast<const char*>(bytes), size);
}

/// Runs `compute`, which returns an optional fingerprint, and hands its result out.
template <typename Compute>
idempotency_result hand_out(unsigned char* fingerprint, idempotency_result* body_result, Compute compute) noexcept {
    try {
        Fingerprinter fingerprinter;
        const std::optional<Fingerprint> value = compute(fingerprinter);
        if (!value) {
            return IDEMPOTENCY_CRYPTO_FAILED;
        }
        std::copy(value->begin(), value->end(), fingerprint);
        if (body_result != nullptr) {
            *body_result = result_of(fingerprinter.body_error());
        }
        return IDEMPOTENCY_OK;
    } catch (...) {  // std::bad_alloc, and nothing else
        return IDEMPOTENCY_OUT_OF_MEMORY;
    }
}

}  // namespace

extern "C" {

const char* idempotency_result_text(idempotency_result result) {
    switch (result) {
        case IDEMPOTENCY_OK:
            return "none";
        case IDEMPOTENCY_NOT_JSON:
            return to_string(CanonicalJsonError::not_json).data();
        case IDEMPOTENCY_DUPLICATE_MEMBER:
            return to_string(CanonicalJsonError::duplicate_member).data();
        case IDEMPOTENCY_INVALID_UTF8:
            return to_string(CanonicalJsonError::invalid_utf8).data();
        case IDEMPOTENCY_LONE_SURROGATE:
            return to_string(CanonicalJsonError::lone_surrogate).data();
        case IDEMPOTENCY_NUMBER_OUT_OF_RANGE:
            return to_string(CanonicalJsonError::number_out_of_range).data();
        case IDEMPOTENCY_NUMBER_NOT_EXACT:
            return to_string(CanonicalJsonError::number_not_exact).data();
        case IDEMPOTENCY_NESTING_TOO_DEEP:
            return to_string(CanonicalJsonError::nesting_too_deep).data();
        case IDEMPOTENCY_OUT_OF_MEMORY:
            return "out of memory";
        case IDEMPOTENCY_CRYPTO_FAILED:
            return "OpenSSL did not compute the hash";
        case IDEMPOTENCY_INVALID_ARGUMENT:
            return "invalid argument";
    }
    return "unknown result";
}

idempotency_result idempotency_canonical_json(const char* document, size_t size, unsigned flags, char** canonical,
                                              size_t* canonical_size, size_t* error_offset) {
    const std::optional<CanonicalJsonOptions> options = options_of(flags);
    if (!options || (document == nullptr && size > 0) || canonical == nullptr || canonical_size == nullptr) {
        return IDEMPOTENCY_INVALID_ARGUMENT;
    }
    *canonical = nullptr;
    *canonical_size = 0;
    try {
        CanonicalJson canonical_json;
        std::string text;
        const CanonicalJsonError error = canonical_json.write(view_of(document, size), text, *options);
        if (error_offset != nullptr) {
            *error_offset = error == CanonicalJsonError::none ? 0 : canonical_json.error_offset();
        }
        if (error != CanonicalJsonError::none) {
            return result_of(error);
        }
        auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
        if (copy == nullptr) {
            return IDEMPOTENCY_OUT_OF_MEMORY;
        }
        std::memcpy(copy, text.c_str(), text.size() + 1);
        *canonical = copy;
        *canonical_size = text.size();
        return IDEMPOTENCY_OK;
    } catch (...) {  // std::bad_alloc, and nothing else
        return IDEMPOTENCY_OUT_OF_MEMORY;
    }
}

void idempotency_free(char* canonical) { std::free(canonical); }

idempotency_result idempotency_fingerprint(const char* method, const char* path, const void* body, size_t body_size,
                                           unsigned flags, unsigned char* fingerprint,
                                           idempotency_result* body_result) {
    const std::optional<CanonicalJsonOptions> options = options_of(flags);
    if (!options || method == nullptr || path == nullptr || (body == nullptr && body_size > 0) ||
        fingerprint == nullptr) {
        return IDEMPOTENCY_INVALID_ARGUMENT;
    }
    return hand_out(fingerprint, body_result, [&](Fingerprinter& fingerprinter) {
        return fingerprinter.compute(method, path, view_of(body, body_size), *options);
    });
}

idempotency_result idempotency_fingerprint_keyed(const void* hmac_key, size_t hmac_key_size, const char* method,
                                                 const char* path, const void* body, size_t body_size, unsigned flags,
                                                 unsigned char* fingerprint, idempotency_result* body_result) {
    const std::optional<CanonicalJsonOptions> options = options_of(flags);
    if (!options || (hmac_key == nullptr && hmac_key_size > 0) || method == nullptr || path == nullptr ||
        (body == nullptr && body_size > 0) || fingerprint == nullptr) {
        return IDEMPOTENCY_INVALID_ARGUMENT;
    }
    return hand_out(fingerprint, body_result, [&](Fingerprinter& fingerprinter) {
        return fingerprinter.compute_keyed(view_of(hmac_key, hmac_key_size), method, path, view_of(body, body_size),
                                           *options);
    });
}

int idempotency_parse_key(const char* value, size_t value_size, char* key) {
    if (value == nullptr) {
        return 0;
    }
    const std::optional<idempotency::Uuid> uuid = idempotency::parse_key({value, value_size});
    if (!uuid) {
        return 0;
    }
    if (key != nullptr) {
        try {
            const std::string text = uuid->to_string();
            std::memcpy(key, text.c_str(), IDEMPOTENCY_KEY_TEXT_SIZE);
        } catch (...) {  // std::bad_alloc, and nothing else
            return 0;
        }
    }
    return 1;
}

}  // extern "C"
