// idempotency-fingerprint: the fingerprint of a request on the command line, and why it is what it is.
// Called by people who look into a reused key, and by scripts in other languages.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

#include "core/fingerprint.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;
using idempotency::Fingerprint;

constexpr int exit_refused = 1;  // no canonical form, or a file that cannot be read
constexpr int exit_usage = 2;

struct Arguments {
    std::string method;
    std::string path;
    std::string file;
    std::string hmac_key_file;
    bool canonical = false;
    bool explain = false;
    bool exact_numbers = false;
};

std::optional<std::string> read_all(const std::string& file) {
    if (file.empty() || file == "-") {
        return std::string(std::istreambuf_iterator<char>(std::cin), {});
    }
    try {
        std::ifstream input(file, std::ios::binary);
        std::string text(std::istreambuf_iterator<char>(input), {});
        return input ? std::optional(text) : std::nullopt;
    } catch (const std::ios_base::failure&) {  // a folder
        return std::nullopt;
    }
}

std::string to_hex(const Fingerprint& value) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : value) {
        text += hex[byte >> 4];
        text += hex[byte & 0x0F];
    }
    return text;
}

std::string explanation(const std::string& body, CanonicalJsonError error, std::size_t offset,
                        std::size_t canonical_size) {
    if (body.empty()) {
        return "body: none, so that nothing of it is covered";
    }
    if (error == CanonicalJsonError::none) {
        return "body: its canonical JSON (RFC 8785), " + std::to_string(canonical_size) + " bytes of " +
               std::to_string(body.size());
    }
    return "body: its " + std::to_string(body.size()) + " raw bytes, because of byte " + std::to_string(offset) + ": " +
           std::string(to_string(error));
}

int run(const Arguments& arguments) {
    const auto refuse = [](const std::string& reason) {
        std::cerr << "idempotency-fingerprint: " << reason << "\n";
        return exit_refused;
    };
    const std::optional<std::string> body = read_all(arguments.file);
    if (!body) {
        return refuse("cannot read " + arguments.file);
    }
    const idempotency::CanonicalJsonOptions options{.exact_numbers = arguments.exact_numbers, .cancelled = nullptr};
    CanonicalJson canonical_json;
    std::string canonical;
    const CanonicalJsonError error =
        body->empty() ? CanonicalJsonError::none : canonical_json.write(*body, canonical, options);
    if (arguments.canonical) {
        if (error != CanonicalJsonError::none) {
            return refuse("no canonical form: byte " + std::to_string(canonical_json.error_offset()) + ": " +
                          std::string(to_string(error)));
        }
        std::cout << canonical << std::flush;
        return 0;
    }
    idempotency::Fingerprinter fingerprinter;
    std::optional<Fingerprint> value;
    if (arguments.hmac_key_file.empty()) {
        value = fingerprinter.compute(arguments.method, arguments.path, *body, options);
    } else {
        const std::optional<std::string> key = read_all(arguments.hmac_key_file);
        if (!key || key->empty()) {
            return refuse("cannot read a key from " + arguments.hmac_key_file);
        }
        value = fingerprinter.compute_keyed(*key, arguments.method, arguments.path, *body, options);
    }
    if (!value) {
        return refuse("OpenSSL did not compute the hash");
    }
    std::cout << to_hex(*value) << "\n";
    if (arguments.explain) {
        std::cout << explanation(*body, error, canonical_json.error_offset(), canonical.size()) << "\n"
                  << "hash: " << (arguments.hmac_key_file.empty() ? "SHA-256" : "HMAC-SHA-256") << "\n";
    }
    return 0;
}

std::string check_path(const std::string& path) {
    const bool good = path.rfind('/', 0) == 0 && path.find_first_of("?#") == std::string::npos;
    return good ? "" : "must be an absolute path without query, as /api/v1/orders";
}

}  // namespace

int main(int argc, char** argv) try {
    CLI::App app{
        "Prints the fingerprint of a request: what pg_idempotency compares to tell a repeat from a reused key.",
        "idempotency-fingerprint"};
    Arguments arguments;
    const auto not_empty = [](const std::string& text) { return text.empty() ? "must not be empty" : ""; };
    app.add_option("METHOD", arguments.method, "the method, in any case")->required()->check(not_empty);
    app.add_option("PATH", arguments.path, "the escaped path as it is sent, without query")
        ->required()
        ->check(check_path);
    app.add_option("FILE", arguments.file, "the body; standard input when left out or -");
    app.add_flag("--canonical", arguments.canonical,
                 "print the canonical body and nothing else; exit 1 when it has none");
    app.add_flag("--explain", arguments.explain, "say which rule was used and why");
    app.add_flag("--exact-numbers", arguments.exact_numbers,
                 "a body with a number that a double changes has no canonical form");
    app.add_option("--hmac-key-file", arguments.hmac_key_file,
                   "HMAC-SHA-256 under the bytes of this file in place of SHA-256");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        std::cerr << "idempotency-fingerprint: " << error.what() << "\n\n" << app.help();
        return exit_usage;
    }
    return run(arguments);
} catch (const std::exception& error) {
    std::cerr << "idempotency-fingerprint: " << error.what() << "\n";
    return exit_refused;
}
