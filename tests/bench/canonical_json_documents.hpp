// Request bodies of given sizes, the same in every run: orders with items, as an API receives them.
// Used by the benchmark of the canonicaliser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace idempotency::bench {

/// A small generator with a fixed start, so that every run measures the same bytes (SplitMix64).
class Numbers {
public:
    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }

private:
    std::uint64_t state_ = 0x5EED;
};

inline std::string order_item(Numbers& numbers) {
    static constexpr const char* names[] = {"Blue pencil, soft",    "Paper A4 \\\"fine\\\"",
                                            "Caf\xC3\xA9 cup",      "Desk lamp",
                                            "Notebook\\n200 pages", "\xD0\x9B\xD0\xB0\xD0\xBC\xD0\xBF\xD0\xB0"};
    // One after the other: the order of calls within one expression is the compiler's.
    const std::string id = std::to_string(numbers.below(1'000'000'000));
    const std::string name = names[numbers.below(6)];
    const std::string quantity = std::to_string(1 + numbers.below(20));
    const std::string price = std::to_string(numbers.below(1000));
    const std::string cents = std::to_string(10 + numbers.below(90));
    const std::string weight = std::to_string(numbers.below(30));
    const std::string grams = std::to_string(numbers.below(1000));
    const std::string gift = numbers.below(2) == 0 ? "true" : "false";
    return R"({"sku": "SKU-)" + id + R"(", "name": ")" + name + R"(", "quantity": )" + quantity +
           R"(, "unit_price": )" + price + "." + cents + R"(, "weight_kg": )" + weight + "." + grams + R"(, "gift": )" +
           gift + R"(, "note": null})";
}

/// An order of about `size` bytes: members in the order that an application writes them, which is not the canonical one.
inline std::string order_body(std::size_t size) {
    Numbers numbers;
    std::string body =
        R"({"customer": {"name": "A. Customer", "email": "customer@example.org", "id": 4711}, "currency": "EUR", "items": [)";
    const std::string end = R"(], "total": 1249.50, "created_at": "2024-05-01T12:00:00Z", "channel": "web"})";
    for (bool first = true; first || body.size() + end.size() < size; first = false) {
        body += (first ? "" : ", ") + order_item(numbers);
    }
    return body + end;
}

}  // namespace idempotency::bench
