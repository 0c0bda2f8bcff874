// libFuzzer target: canonical JSON never crashes, its output is a fixed point with the same value, and every option agrees.
// Called by tests/fuzz/run.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/fingerprint.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;
using idempotency::CanonicalJsonOptions;

void expect(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "broken: %s\n", what);
        std::abort();
    }
}

/// The same value, numbers compared as doubles: an integer may have become 1e+21.
bool same_value(const nlohmann::json& a, const nlohmann::json& b) {
    if (a.is_number()) {
        return b.is_number() && a.get<double>() == b.get<double>();
    }
    if (a.type() != b.type() || a.size() != b.size()) {
        return false;
    }
    if (a.is_object()) {
        return std::equal(a.items().begin(), a.items().end(), b.items().begin(), [](const auto& x, const auto& y) {
            return x.key() == y.key() && same_value(x.value(), y.value());
        });
    }
    return a.is_array() ? std::equal(a.begin(), a.end(), b.begin(), same_value) : a == b;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Memory of just this size, so that one byte too many is seen.
    const auto bytes = std::make_unique<char[]>(size);
    if (size > 0) {
        std::memcpy(bytes.get(), data, size);
    }
    const std::string_view document(bytes.get(), size);
    static CanonicalJson kept;  // keeps its buffers from one input to the next
    CanonicalJson fresh;
    std::string once;
    std::string again;
    const CanonicalJsonError error = kept.write(document, once);
    expect(fresh.write(document, again) == error, "buffers of earlier documents change nothing");
    const CanonicalJsonOptions exact{.exact_numbers = true, .cancelled = nullptr};
    std::string with_exact;
    const CanonicalJsonError exact_error = fresh.write(document, with_exact, exact);
    if (error != CanonicalJsonError::none) {
        expect(kept.error_offset() <= size, "an error is in the document");
        expect(exact_error != CanonicalJsonError::none, "exact numbers allow nothing more");
        return 0;
    }
    expect(once == again, "buffers of earlier documents change no byte");
    expect(exact_error == CanonicalJsonError::number_not_exact ||
               (exact_error == CanonicalJsonError::none && with_exact == once),
           "exact numbers change nothing else");
    expect(fresh.write(once, again) == CanonicalJsonError::none && once == again,
           "the canonical form is a fixed point");
    const auto given = nlohmann::json::parse(document, nullptr, false);
    const auto written = nlohmann::json::parse(once, nullptr, false);
    expect(given.is_discarded() || same_value(given, written), "the canonical form has the same value");
    return 0;
}
