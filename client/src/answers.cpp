// The stage's own answers.
// Called by the stage.
#include "answers.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/final_status.hpp"
#include "core/sqlstate.hpp"

namespace idempotency::answers {
namespace {

using nlohmann::json;

constexpr const char* retry_after_seconds = "1";

/// Reads a document without building it, and keeps what the stage asks about: members of the outermost object. Of two members of one name the last
/// counts. No value of the JSON library is destroyed here: its destructor takes memory, and ends the process when there is none.
class Document final : public nlohmann::json_sax<json> {
public:
    explicit Document(std::string_view text) : valid_(json::sax_parse(text, this)) {}

    [[nodiscard]] bool valid() const noexcept { return valid_; }
    [[nodiscard]] std::optional<std::string> string_member(const std::string& name) const {
        return member(strings_, name);
    }
    /// In decimal digits.
    [[nodiscard]] std::optional<std::string> integer_member(const std::string& name) const {
        return member(integers_, name);
    }

    // What the parser calls.
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t value) override { return integer(std::to_string(value)); }
    bool number_unsigned(number_unsigned_t value) override { return integer(std::to_string(value)); }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return start(true); }
    bool end_object() override { return end(); }
    bool start_array(std::size_t) override { return start(false); }
    bool end_array() override { return end(); }
    bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }
    bool string(string_t& value) override {
        if (is_member()) {
            strings_[key_] = value;
        }
        return true;
    }
    bool key(string_t& name) override {
        if (is_member()) {
            key_ = name;
            strings_.erase(key_);
            integers_.erase(key_);
        }
        return true;
    }

private:
    using Members = std::map<std::string, std::string>;

    [[nodiscard]] std::optional<std::string> member(const Members& members, const std::string& name) const {
        const auto found = members.find(name);
        return valid_ && found != members.end() ? std::optional(found->second) : std::nullopt;
    }
    [[nodiscard]] bool is_member() const noexcept { return depth_ == 1 && in_object_; }

    bool integer(const std::string& digits) {
        if (is_member()) {
            integers_[key_] = digits;
        }
        return true;
    }
    bool start(bool object) noexcept {
        in_object_ = depth_ == 0 ? object : in_object_;
        ++depth_;
        return true;
    }
    bool end() noexcept {
        --depth_;
        return true;
    }

    Members strings_;
    Members integers_;
    std::string key_;
    int depth_ = 0;
    bool in_object_ = false;  ///< the outermost value is an object
    bool valid_;
};

/// Errors of the server that pass: it is shutting down or starting, out of resources, a standby, or a statement took too long.
bool is_passing(std::string_view sqlstate) {
    constexpr std::string_view classes[] = {"08", "53", "57"};
    return sqlstate == "25006" ||
           std::ranges::any_of(classes, [&](auto prefix) { return sqlstate.starts_with(prefix); });
}

}  // namespace

Problem invalid_key() {
    return {400,
            "validation_failed",
            "Validation failed",
            "The header Idempotency-Key must hold one UUID of version 7. Make a new one for each operation.",
            {{"#header/Idempotency-Key", "invalid_format", "Must be one UUIDv7, bare or in double quotes."}},
            {}};
}

Problem missing_key() {
    return {400,
            "validation_failed",
            "Validation failed",
            "This operation needs the header Idempotency-Key. Make a new UUIDv7 for each operation.",
            {{"#header/Idempotency-Key", "required", "Must be there."}},
            {}};
}

Problem key_expired() {
    return {422,
            "idempotency_key_expired",
            "Idempotency key expired",
            "This Idempotency-Key is too old, and its answer is no longer kept. Find out what became of the operation.",
            {},
            {}};
}

Problem key_from_the_future() {
    return {400,
            "validation_failed",
            "Validation failed",
            "The time in Idempotency-Key is ahead of the server's clock.",
            {{"#header/Idempotency-Key", "invalid_time", "Must not be from the future."}},
            {}};
}

Problem body_too_large(std::size_t limit) {
    return {413,
            "content_too_large",
            "Content too large",
            "The body may have " + std::to_string(limit) + " bytes at most.",
            {},
            {}};
}

Problem key_reuse() {
    return {422,
            "idempotency_key_reuse",
            "Idempotency key reused",
            "This Idempotency-Key belongs to another request. Use a new key for a new request.",
            {},
            {}};
}

Problem request_in_progress() {
    return {409,
            "request_in_progress",
            "Request in progress",
            "The first request with this Idempotency-Key is still running. Repeat it later with the same key.",
            {},
            {}};
}

Problem unknown_principal() {
    return {401, "unknown_principal", "Unauthorized", "The principal of this request does not exist.", {}, {}};
}

Problem internal_error() {
    return {500, "internal_error", "Internal error", "Something went wrong on the server; nothing was changed.", {},
            {}};
}

Problem service_unavailable() {
    return {503,
            "service_unavailable",
            "Service unavailable",
            "The request could not be carried out just now. Repeat it with the same Idempotency-Key.",
            {},
            {}};
}

Problem of_database_error(const Error& error) {
    if (error.sqlstate() == sqlstate::request_in_progress) {
        return request_in_progress();
    }
    if (error.sqlstate() == sqlstate::key_expired) {
        return key_expired();
    }
    if (error.sqlstate() == sqlstate::key_from_the_future) {
        return key_from_the_future();
    }
    if (error.retryable() || error.in_doubt() || is_passing(error.sqlstate())) {
        return service_unavailable();
    }
    return internal_error();
}

http::Response to_response(const Problem& problem, const std::string& correlation_id) {
    http::Response response = problem.to_response(correlation_id);
    if (problem.status == 503 || problem.code == request_in_progress().code) {
        response.headers.set("Retry-After", retry_after_seconds);
    }
    return response;
}

std::optional<std::string> problem_code(const http::Response& response) {
    return Document(response.body).string_member("code");
}

void set_derived_headers(http::Response& response, const Operation& operation, const std::optional<Uuid>& resource_id) {
    constexpr std::string_view placeholder = "{resource_id}";
    if (response.status == 201 && resource_id && !operation.location.empty()) {
        std::string location = operation.location;
        if (const std::size_t at = location.find(placeholder); at != std::string::npos) {
            location.replace(at, placeholder.size(), resource_id->to_string());
        }
        response.headers.set("Location", location);
    }
    if (response.body.empty()) {
        response.headers.remove("Content-Type");
        return;
    }
    response.headers.set("Content-Type", is_success(response.status) ? "application/json" : "application/problem+json");
    if (std::ranges::find(operation.etag_statuses, response.status) == operation.etag_statuses.end()) {
        return;
    }
    if (const auto version = Document(response.body).integer_member("version")) {
        response.headers.set("ETag", '"' + *version + '"');
    }
}

std::optional<Answer> to_store(const http::Response& response) {
    Answer answer{response.status, std::nullopt, std::nullopt};
    if (response.body.empty() || response.status == 204) {
        return answer;
    }
    const Document document(response.body);
    if (!document.valid()) {
        return std::nullopt;
    }
    answer.body = response.body;
    if (const auto id = document.string_member("id")) {
        answer.resource_id = Uuid::parse(*id);
    }
    return answer;
}

http::Response from_answer(const Answer& answer) {
    return answer.body ? http::Response::json(answer.status, *answer.body) : http::Response{answer.status, {}, ""};
}

http::Response from_row(const Result& row) {
    Answer answer;
    answer.status = std::stoi(std::string(row.get(0, 0).value_or("0")));
    if (const auto body = row.get(0, 1)) {
        answer.body = std::string(*body);
    }
    return from_answer(answer);
}

bool is_one_time_secret(const Answer& answer) {
    return is_success(answer.status) && answer.body == one_time_secret_body;  // the server has one spelling of it
}

http::Response replay(const Answer& answer, const Operation& operation, const std::string& correlation_id) {
    http::Response response;
    if (is_one_time_secret(answer)) {
        const Problem secret{409,        "conflict",
                             "Conflict", "The first answer carried a secret that is shown once, so it was not kept.",
                             {},         {{"reason", "one_time_secret"}, {"hint", "create a new one"}}};
        response = secret.to_response(correlation_id);
    } else {
        response.status = answer.status;
        response.body = answer.body.value_or("");
        set_derived_headers(response, operation, answer.resource_id);
    }
    response.headers.set("Idempotent-Replay", "true");
    response.headers.set("Cache-Control", "no-store");
    return response;
}

}  // namespace idempotency::answers
