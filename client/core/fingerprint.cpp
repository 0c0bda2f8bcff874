// The fingerprint of a request, on OpenSSL's SHA-256.
// Called by the extension, the shim, the C interface and idempotency-fingerprint.
#include "core/fingerprint.hpp"

#include <openssl/evp.h>

#include <memory>

namespace idempotency {
namespace {

constexpr std::size_t block_size = 64;  // of SHA-256, for HMAC (RFC 2104)

/// Looked up once: the look-up costs more than hashing a short body. When that failed, each use looks it up again.
const EVP_MD* sha256() noexcept {
    static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return algorithm != nullptr ? algorithm : EVP_sha256();
}

struct FreeDigest {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

/// One SHA-256 computation.
class Digest {
public:
    Digest() noexcept
        : context_(EVP_MD_CTX_new()), ok_(context_ && EVP_DigestInit_ex2(context_.get(), sha256(), nullptr) == 1) {}
    void add(std::string_view bytes) noexcept {
        ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
    }
    [[nodiscard]] std::optional<Fingerprint> finish() noexcept {
        Fingerprint value{};
        ok_ = ok_ && EVP_DigestFinal_ex(context_.get(), value.data(), nullptr) == 1;
        return ok_ ? std::optional(value) : std::nullopt;
    }

private:
    std::unique_ptr<EVP_MD_CTX, FreeDigest> context_;
    bool ok_;
};

void add_request(Digest& digest, std::string_view method, std::string_view path, std::string_view body) {
    std::string upper_method(method);
    for (char& c : upper_method) {
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    digest.add(upper_method);
    digest.add("\n");
    digest.add(path);
    digest.add("\n");
    digest.add(body);
}

std::string_view bytes_of(const Fingerprint& value) noexcept {
    return {reinterpret_cast<const char*>(value.data()), value.size()};
}

/// The key of an HMAC padded to a block, each byte combined with `pad`.
std::string padded_key(std::string_view key, unsigned char pad) {
    std::string block(key);
    block.resize(block_size, '\0');
    for (char& c : block) {
        c = static_cast<char>(static_cast<unsigned char>(c) ^ pad);
    }
    return block;
}

}  // namespace

std::optional<std::string_view> Fingerprinter::canonical_body(std::string_view body,
                                                              const CanonicalJsonOptions& options) {
    body_error_ = CanonicalJsonError::none;
    if (body.empty()) {
        return body;
    }
    body_error_ = canonical_json_.write(body, canonical_body_, options);
    if (body_error_ == CanonicalJsonError::cancelled) {
        return std::nullopt;
    }
    return body_error_ == CanonicalJsonError::none ? std::string_view(canonical_body_) : body;
}

std::optional<Fingerprint> Fingerprinter::compute(std::string_view method, std::string_view path, std::string_view body,
                                                  const CanonicalJsonOptions& options) {
    const std::optional<std::string_view> canonical = canonical_body(body, options);
    if (!canonical) {
        return std::nullopt;
    }
    Digest digest;
    add_request(digest, method, path, *canonical);
    return digest.finish();
}

std::optional<Fingerprint> Fingerprinter::compute_keyed(std::string_view hmac_key, std::string_view method,
                                                        std::string_view path, std::string_view body,
                                                        const CanonicalJsonOptions& options) {
    const std::optional<std::string_view> canonical = canonical_body(body, options);
    if (!canonical) {
        return std::nullopt;
    }
    Fingerprint long_key;  // cppcheck-suppress variableScope; hmac_key points into it
    if (hmac_key.size() > block_size) {
        Digest of_key;
        of_key.add(hmac_key);
        const std::optional<Fingerprint> hashed = of_key.finish();
        if (!hashed) {
            return std::nullopt;
        }
        long_key = *hashed;
        hmac_key = bytes_of(long_key);
    }
    Digest inner;
    inner.add(padded_key(hmac_key, 0x36));
    add_request(inner, method, path, *canonical);
    const std::optional<Fingerprint> inner_value = inner.finish();
    if (!inner_value) {
        return std::nullopt;
    }
    Digest outer;
    outer.add(padded_key(hmac_key, 0x5C));
    outer.add(bytes_of(*inner_value));
    return outer.finish();
}

}  // namespace idempotency
