// The key store: calls of the extension's SQL functions.
// Called by the stage and by applications without HTTP.
#include "idempotency/store.hpp"

#include <array>
#include <charconv>
#include <stdexcept>

#include "core/sqlstate.hpp"
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

std::vector<Parameter> begin_parameters(const KeyedRequest& request) {
    return {request.principal_id, request.key, request.action, hex(request.request_sha256), interval(request.ttl)};
}

BeginResult begin_result(const Result& row) {
    return {outcome_of(row.get(0, 0)), {integer(row, 1), text(row, 2), uuid(row, 3)}};
}

/// SQLSTATE of the commit guard: the statement gave no row, so nothing was completed.
bool left_in_progress(const Error& error) { return error.sqlstate() == sqlstate::key_left_in_progress; }

}  // namespace

Store::Store(const StoreOptions& options) {
    const std::string schema = quoted_identifier(options.schema);
    begin_ = "SELECT outcome, response_status, response_body, resource_id FROM " + schema +
             ".idempotency_begin($1::uuid, $2::uuid, $3::text, $4::bytea, $5::interval)";
    complete_function_ = schema + ".idempotency_complete";
    complete_ = "SELECT " + schema + ".idempotency_complete($1::uuid, $2::uuid, $3::integer, $4::jsonb, $5::uuid)";
    save_final_ = "SELECT " + schema +
                  ".idempotency_save_final($1::uuid, $2::uuid, $3::text, $4::bytea, $5::integer, $6::jsonb, $7::uuid,"
                  " $8::interval)";
}

BeginResult Store::begin(Transaction& transaction, const KeyedRequest& request) const {
    return begin_result(Transaction::Control::claim(transaction, begin_, begin_parameters(request)));
}

void Store::begin_deferred(Transaction& transaction, const KeyedRequest& request) const {
    Transaction::Control::queue_claim(transaction, begin_, begin_parameters(request));
}

std::optional<BeginResult> Store::refused(const Transaction& transaction) const {
    const std::optional<Result>& row = Transaction::Control::refused(transaction);
    return row ? std::optional(begin_result(*row)) : std::nullopt;
}

bool Store::started(const Result& claim) { return claim.get(0, 0) == "started"; }

std::optional<std::string> Store::complete(Transaction& transaction, const KeyedRequest& request,
                                           const Answer& answer) const {
    return text(Transaction::Control::execute(transaction, complete_, complete_parameters(request, answer)), 0);
}

std::optional<std::string> Store::complete_and_commit(Transaction& transaction, const KeyedRequest& request,
                                                      const Answer& answer) const {
    return text(Transaction::Control::execute_and_commit(transaction, complete_, complete_parameters(request, answer)),
                0);
}

std::optional<Answer> Store::finish_with(Transaction& transaction, const KeyedRequest& request,
                                         std::string_view statement, std::vector<Parameter> parameters) const {
    const std::string principal = "$" + std::to_string(parameters.size() + 1);
    const std::string key = "$" + std::to_string(parameters.size() + 2);
    parameters.emplace_back(request.principal_id);
    parameters.emplace_back(request.key);
    const std::string sql = "WITH answer (status, body, resource_id) AS (" + std::string(statement) +
                            ") SELECT status, " + complete_function_ + "(" + principal + "::uuid, " + key +
                            "::uuid, status, body, resource_id), resource_id FROM answer";
    try {
        const Result row = Transaction::Control::execute_and_commit(transaction, sql, std::move(parameters));
        return row.rows() == 0 ? std::nullopt : std::optional(Answer{integer(row, 0), text(row, 1), uuid(row, 2)});
    } catch (const Error& error) {
        if (left_in_progress(error)) {
            return std::nullopt;
        }
        throw;
    }
}

std::optional<std::string> Store::save_final(Transaction& transaction, const KeyedRequest& request,
                                             const Answer& answer) const {
    const Result row = Transaction::Control::execute_and_commit(
        transaction, save_final_,
        {request.principal_id, request.key, request.action, hex(request.request_sha256), answer.status, answer.body,
         answer.resource_id, interval(request.ttl)});
    return text(row, 0);
}

}  // namespace idempotency
