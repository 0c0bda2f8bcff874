// Canonicalises a document a line, in hexadecimal: writes "ok HEX", or "no REASON".
// Called by tests/fuzz/differential.
#include <iostream>
#include <string>

#include "core/canonical_json.hpp"

namespace {

int hex_value(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

}  // namespace

int main() {
    constexpr std::string_view hex = "0123456789abcdef";
    std::ios::sync_with_stdio(false);
    idempotency::CanonicalJson canonical_json;
    std::string line;
    std::string document;
    std::string canonical;
    while (std::getline(std::cin, line)) {
        document.clear();
        for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
            document += static_cast<char>(hex_value(line[i]) << 4 | hex_value(line[i + 1]));
        }
        const idempotency::CanonicalJsonError error = canonical_json.write(document, canonical);
        if (error != idempotency::CanonicalJsonError::none) {
            std::cout << "no " << to_string(error) << '\n';
            continue;
        }
        line = "ok ";
        for (const char c : canonical) {
            line += hex[static_cast<unsigned char>(c) >> 4];
            line += hex[static_cast<unsigned char>(c) & 0x0F];
        }
        std::cout << line << '\n';
    }
}
