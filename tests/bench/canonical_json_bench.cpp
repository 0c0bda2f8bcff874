// Measures canonical form and fingerprint against SHA-256 alone and JSON parsers, side by side in one run. Prints a JSON line a result.
// Called by tests/bench/canonical_json.
#include <openssl/evp.h>
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "canonical_json_documents.hpp"
#include "core/fingerprint.hpp"

namespace {

using idempotency::CanonicalJson;
using idempotency::CanonicalJsonError;
using idempotency::Fingerprinter;

struct Size {
    const char* name;
    std::size_t bytes;
};
constexpr Size sizes[] = {{"300 B", 300}, {"2 KB", 2048}, {"64 KB", 64 * 1024}, {"5 MB", 5 * 1024 * 1024}};

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "canonical_json_bench: %s failed\n", what);
    std::exit(1);
}

struct Row {
    const char* name;
    std::vector<double> nanoseconds;  ///< of one call, for each size
};

double nanoseconds_of(const std::function<void()>& work, std::size_t calls) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) {
        work();
    }
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / static_cast<double>(calls);
}

/// Takes turns, so that all meet the same noise. The best of the rounds of about 20 ms is what the code needs.
void measure_by_turns(std::vector<Row>& rows, const std::vector<std::function<void()>>& works) {
    std::vector<std::size_t> calls;
    for (std::size_t i = 0; i < works.size(); ++i) {
        const double first = std::max(nanoseconds_of(works[i], 1), 100.0);
        calls.push_back(static_cast<std::size_t>(std::max(1.0, 20e6 / first)));
        rows[i].nanoseconds.push_back(first);
    }
    for (int round = 0; round < 15; ++round) {
        for (std::size_t i = 0; i < works.size(); ++i) {
            rows[i].nanoseconds.back() = std::min(rows[i].nanoseconds.back(), nanoseconds_of(works[i], calls[i]));
        }
    }
}

void sha256_alone(const std::string& body) {
    static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    static EVP_MD_CTX* const context = EVP_MD_CTX_new();
    unsigned char value[32];
    if (EVP_DigestInit_ex2(context, algorithm, nullptr) != 1 ||
        EVP_DigestUpdate(context, body.data(), body.size()) != 1 || EVP_DigestFinal_ex(context, value, nullptr) != 1) {
        fail("SHA-256");
    }
}

std::vector<Row> measure() {
    std::vector<Row> rows{{"SHA-256 alone", {}},
                          {"canonicalise", {}},
                          {"canonicalise and hash", {}},
                          {"nlohmann DOM parse", {}},
                          {"simdjson DOM parse", {}}};
    for (const Size& size : sizes) {
        const std::string body = idempotency::bench::order_body(size.bytes);
        CanonicalJson canonical_json;
        Fingerprinter fingerprinter;
        std::string canonical;
        simdjson::dom::parser parser;
        const simdjson::padded_string padded(body);
        measure_by_turns(rows, {
                                   [&] { sha256_alone(body); },
                                   [&] {
                                       if (canonical_json.write(body, canonical) != CanonicalJsonError::none) {
                                           fail("canonicalise");
                                       }
                                   },
                                   [&] {
                                       if (!fingerprinter.compute("POST", "/api/v1/orders", body) ||
                                           fingerprinter.body_error() != CanonicalJsonError::none) {
                                           fail("fingerprint");
                                       }
                                   },
                                   [&] {
                                       if (nlohmann::json::parse(body).empty()) {
                                           fail("nlohmann");
                                       }
                                   },
                                   [&] {
                                       if (parser.parse(padded).error() != simdjson::SUCCESS) {
                                           fail("simdjson");
                                       }
                                   },
                               });
    }
    return rows;
}

/// Lines "300 nanoseconds" of another program that measured the same documents.
std::vector<double> read_results(const char* file) {
    std::map<std::size_t, double> found;
    std::ifstream lines(file);
    std::size_t bytes = 0;
    for (double time = 0; lines >> bytes >> time;) {
        found[bytes] = time;
    }
    std::vector<double> results;
    for (const Size& size : sizes) {
        results.push_back(found.contains(size.bytes) ? found[size.bytes] : 0);
    }
    return results;
}

void print(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.nanoseconds.size(); ++i) {
            std::cout << nlohmann::json{{"benchmark", "canonical_json"},
                                        {"variant", row.name},
                                        {"body", sizes[i].name},
                                        {"values", {{"microseconds", row.nanoseconds[i] / 1000}}}}
                      << std::endl;
        }
    }
}

/// An input made to hurt, of a size that n gives.
struct Hostile {
    const char* name;
    std::string (*make)(std::size_t n);
    std::size_t n;
};

std::string unsorted_levels(std::size_t n) {
    std::string body;
    for (int level = 0; level < 900; ++level) {
        body += R"({"b":1,"a":)";
    }
    return body + '"' + std::string(n, 'x') + '"' + std::string(900, '}');
}

std::string brackets(std::size_t n) { return std::string(n, '['); }

/// Names with one long prefix, the last ones first.
std::string one_prefix(std::size_t n) {
    std::string body = "{";
    for (std::size_t i = n; i > 0; --i) {
        body += (body.size() > 1 ? ",\"" : "\"") + std::string(40, 'p') + std::to_string(10'000'000 + i) + "\":0";
    }
    return body + "}";
}

std::string duplicates_at_the_end(std::size_t n) {
    std::string body = "{";
    for (std::size_t i = 0; i < n; ++i) {
        body += "\"" + std::to_string(10'000'000 + i) + "\":0,";
    }
    return body + R"("last":0,"last":0})";
}

std::string long_number(std::size_t n) { return "1" + std::string(n, '7'); }

/// Four times the input: about four times as long is linear, about 4.5 is n log n, sixteen would be quadratic.
void print_growth() {
    const Hostile inputs[] = {{"1,000 unsorted levels", unsorted_levels, 2'500'000},
                              {"opening brackets", brackets, 2'500'000},
                              {"members with one prefix", one_prefix, 250'000},
                              {"duplicates at the end", duplicates_at_the_end, 250'000},
                              {"one number", long_number, 2'500'000}};
    for (const Hostile& input : inputs) {
        double milliseconds[2];
        for (int i = 0; i < 2; ++i) {
            const std::string body = input.make(i == 0 ? input.n : 4 * input.n);
            CanonicalJson canonical_json;
            std::string canonical;
            const auto write = [&] { (void)canonical_json.write(body, canonical); };
            double best = nanoseconds_of(write, 1);
            for (int round = 0; round < 4; ++round) {
                best = std::min(best, nanoseconds_of(write, 1));
            }
            milliseconds[i] = best / 1e6;
        }
        std::cout << nlohmann::json{{"benchmark", "canonical_json"},
                                    {"variant", "canonicalise"},
                                    {"body", input.name},
                                    {"values",
                                     {{"milliseconds", milliseconds[0]},
                                      {"milliseconds for four times the input", milliseconds[1]},
                                      {"growth", milliseconds[1] / milliseconds[0]}}}}
                  << std::endl;
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "--write") {
        for (const Size& size : sizes) {
            std::ofstream(std::string(argv[2]) + "/" + std::to_string(size.bytes) + ".json")
                << idempotency::bench::order_body(size.bytes);
        }
        return 0;
    }
    std::vector<Row> rows = measure();
    for (int i = 1; i + 1 < argc; i += 2) {  // pairs: the name of a program, the file with its results
        rows.push_back({argv[i], read_results(argv[i + 1])});
    }
    print(rows);
    print_growth();
}
