// The key store: calls of the extension's SQL functions.
// Called by the stage and by applications without HTTP.
#include "idempotency/store.hpp"

#include <array>
#include <charconv>
#include <stdexcept>

#include "idempotency/error.hpp"
#include "transaction_control.hpp"

namespace idempotency {
namespace {

/// An SQL identifier in double quotes.
std::string quoted_identifier(std::string_view name) {
    std::string identifier = "\"";
    for (const char c : name) {
        identifier += c;
        if (c == '"') {
            identifier += c;
        }
    }
    return identifier += '"';
}

/// Bytes in the text form of bytea.
std::string hex(const Fingerprint& fingerprint) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "\\x";
    for (const std::uint8_t byte : fingerprint) {
        text += digits[byte >> 4];
        text += digits[byte & 0x0F];
    }
    return text;
}

Parameter interval(const std::optional<std::chrono::seconds>& ttl) {
    return ttl ? Parameter(std::to_string(ttl->count()) + " seconds") : Parameter(std::nullopt);
}

std::optional<std::string> text(const Result& result, std::size_t column) {
    const auto value = result.get(0, column);
    return value ? std::optional<std::string>(*value) : std::nullopt;
}

std::optional<Uuid> uuid(const Result& result, std::size_t column) {
    const auto value = result.get(0, column);
    return value ? Uuid::parse(*value) : std::nullopt;
}

int integer(const Result& result, std::size_t column) {
    int number = 0;
    if (const auto value = result.get(0, column)) {
        std::from_chars(value->data(), value->data() + value->size(), number);
    }
    return number;
}

Outcome outcome_of(const std::optional<std::string_view>& word) {
    constexpr std::array<std::pair<std::string_view, Outcome>, 4> outcomes{{{"started", Outcome::started},
                                                                            {"replay", Outcome::replay},
                                                                            {"reuse", Outcome::reuse},
                                                                            {"in_progress", Outcome::in_progress}}};
    for (const auto& [name, outcome] : outcomes) {
        if (word == name) {
            return outcome;
        }
    }
    throw std::runtime_error("idempotency_begin gave an outcome that this version does not know");
}

std::vector<Parameter> complete_parameters(const KeyedRequest& request, const Answer& answer) {
    return {request.principal_id, request.key, answer.status, answer.body, answer.resource_id};
}

}  // namespace

Store::Store(StoreOptions options) : prepared_(options.prepared_statements) {
    const std::string schema = quoted_identifier(options.schema);
    begin_ = "SELECT outcome, response_status, response_body, resource_id FROM " + schema +
             ".idempotency_begin($1::uuid, $2::uuid, $3::text, $4::bytea, $5::interval)";
    complete_ = "SELECT " + schema + ".idempotency_complete($1::uuid, $2::uuid, $3::integer, $4::jsonb, $5::uuid)";
    save_final_ = "SELECT " + schema +
                  ".idempotency_save_final($1::uuid, $2::uuid, $3::text, $4::bytea, $5::integer, $6::jsonb, $7::uuid,"
                  " $8::interval)";
}

BeginResult Store::begin(Transaction& transaction, const KeyedRequest& request) const {
    const Result row = Transaction::Control::execute(
        transaction, begin_,
        {request.principal_id, request.key, request.action, hex(request.request_sha256), interval(request.ttl)}, prepared_);
    return {outcome_of(row.get(0, 0)), {integer(row, 1), text(row, 2), uuid(row, 3)}};
}

std::optional<std::string> Store::complete(Transaction& transaction, const KeyedRequest& request,
                                           const Answer& answer) const {
    return text(Transaction::Control::execute(transaction, complete_, complete_parameters(request, answer), prepared_), 0);
}

std::optional<std::string> Store::complete_and_commit(Transaction& transaction, const KeyedRequest& request,
                                                      const Answer& answer) const {
    return text(Transaction::Control::execute_and_commit(transaction, complete_, complete_parameters(request, answer), prepared_),
                0);
}

std::optional<std::string> Store::save_final(Transaction& transaction, const KeyedRequest& request,
                                             const Answer& answer) const {
    const Result row = Transaction::Control::execute_and_commit(
        transaction, save_final_,
        {request.principal_id, request.key, request.action, hex(request.request_sha256), answer.status, answer.body,
         answer.resource_id, interval(request.ttl)},
        prepared_);
    return text(row, 0);
}

}  // namespace idempotency
