// The clients of the crash suite.
// Called by main.cpp.
#include "outbox.hpp"

#include <chrono>
#include <thread>

namespace crash {
namespace {

using Clock = std::chrono::steady_clock;

/// Far longer than any recovery here takes: who waits for that long, waits for ever.
constexpr std::chrono::seconds patience{60};

/// 2xx and the errors that are kept, but for the one that says "not yet".
bool is_final(int status, const std::string& code) {
    constexpr std::array errors{400, 403, 404, 409, 410, 412, 413, 415, 422};
    return (status >= 200 && status < 300) ||
           (std::ranges::find(errors, status) != errors.end() && code != "request_in_progress");
}

std::string text(const Answer& answer) {
    return std::to_string(answer.status) + " " + answer.content_type + " ETag " + answer.etag + " Location " +
           answer.location + " " + answer.body;
}

}  // namespace

Outbox::Outbox(const std::string& url, const std::string& sender, unsigned long long seed, Traffic& traffic,
               Verdict& verdict)
    : OrdersClient(url, sender),
      chance_(seed),
      traffic_(traffic),
      verdict_(verdict),
      patient_(client()),
      hasty_(client()) {
    patient_.set_keep_alive(true);
    patient_.set_tcp_nodelay(true);
    patient_.set_read_timeout(5, 0);
    // Gives up while the request still runs, so that the repeat meets it.
    hasty_.set_read_timeout(0, 8'000);
}

void Outbox::work(const std::atomic<bool>& stop) {
    while (!stop) {
        Operation& created = create();
        perform(created);
        if (one_in(4)) {
            repeat(operations_[std::uniform_int_distribution<std::size_t>(0, operations_.size() - 1)(chance_)]);
        }
        if (created.first && created.first->status == 201 && one_in(2)) {
            change(json::parse(created.first->body)["id"]);
        }
        if (one_in(4)) {
            be_refused();
        }
    }
}

void Outbox::repeat_all() {
    for (Operation& operation : operations_) {
        if (operation.first) {
            repeat(operation);
        }
        // An error that was never stored has run anew just now, undisturbed: now it must be there.
        if (operation.first && !operation.replayed) {
            repeat(operation);
            if (!operation.replayed) {
                verdict_.against(Claim::a_replay_is_the_first_answer_byte_for_byte, operation.text() + ": no replay");
            }
        }
    }
}

Operation& Outbox::add(Operation::Kind kind, const std::string& method, const std::string& path, int expected) {
    const std::string key = new_key();
    // The key is in the effect's row too: that is how an effect is traced to its key.
    return operations_.emplace_back(
        Operation{kind, key, method, path, R"({"sku":")" + key + R"(","quantity":2})", "", "", expected});
}

Operation& Outbox::create() {
    Operation& operation = add(Operation::Kind::create, "POST", "/api/v1/orders", 201);
    if (one_in(6)) {
        operation.behaviour = "sleep=20";  // longer in its transaction: a better target
    }
    return operation;
}

/// Replaces the order, and deletes it perhaps. A second run would show: version 3, or 404.
void Outbox::change(const std::string& id) {
    Operation& replaced = add(Operation::Kind::replace, "PUT", "/api/v1/orders/" + id, 200);
    replaced.if_match = "*";
    perform(replaced);
    if (one_in(2)) {
        Operation& removed = add(Operation::Kind::remove, "DELETE", "/api/v1/orders/" + id, 204);
        removed.body.clear();
        perform(removed);
    }
}

void Outbox::be_refused() {
    switch (std::uniform_int_distribution(1, 3)(chance_)) {
        case 1: {
            Operation& sold_out = add(Operation::Kind::refused, "POST", "/api/v1/orders", 409);
            sold_out.body = R"({"sku":"SOLD-OUT","quantity":1})";
            return perform(sold_out);
        }
        case 2: {
            Operation& invalid = add(Operation::Kind::refused, "POST", "/api/v1/orders", 400);
            invalid.body = R"({"sku":"A-1","quantity":0})";
            return perform(invalid);
        }
        default: {
            Operation& unknown = add(Operation::Kind::refused, "DELETE", "/api/v1/orders/" + new_key(), 404);
            unknown.body.clear();
            return perform(unknown);
        }
    }
}

void Outbox::perform(Operation& operation) {
    const Result result = until_final(operation);
    if (!result) {
        return;
    }
    ++traffic_.acknowledged;
    if (result->status != operation.expected) {
        verdict_.against(Claim::every_answer_is_that_of_a_first_run,
                         operation.text() + ": expected " + std::to_string(operation.expected) + ", got " +
                             std::to_string(result->status) + " " + result->body);
    }
    operation.first = Answer{result->status, result->body, result->get_header_value("Content-Type"),
                             result->get_header_value("ETag"), result->get_header_value("Location")};
    if (is_replay(result)) {
        operation.replayed = operation.first;
    }
}

void Outbox::repeat(Operation& operation) {
    if (const Result result = until_final(operation); result && operation.first) {
        compare(operation,
                Answer{result->status, result->body, result->get_header_value("Content-Type"),
                       result->get_header_value("ETag"), result->get_header_value("Location")},
                is_replay(result));
    }
}

/// A success is one commit with its key, so whatever was told is stored. A final error has no effect and is stored after the rollback: a
/// fault in between leaves it told and not stored. Then a repeat runs anew; it must be refused in the same way, with a
/// correlation_id of its own, until a replay shows that it is stored. From then on every byte stays.
void Outbox::compare(Operation& operation, const Answer& again, bool is_replay) {
    ++traffic_.replays;
    const bool first_is_stored = operation.succeeds() || operation.replayed;
    const Answer& expected = operation.replayed ? *operation.replayed : *operation.first;
    bool same = again == expected && (is_replay || !first_is_stored);
    if (!same && !first_is_stored) {
        ++traffic_.errors_run_anew;
        json one = json::parse(expected.body), other = json::parse(again.body);
        one.erase("correlation_id");
        other.erase("correlation_id");
        same = again.status == expected.status && one == other;
    }
    if (!same) {
        verdict_.against(Claim::a_replay_is_the_first_answer_byte_for_byte,
                         operation.text() + ": first " + text(expected) + ", then " + text(again) +
                             (is_replay ? " as a replay" : " not as a replay"));
    }
    if (is_replay) {
        operation.replayed = again;
    }
}

OrdersClient::Result Outbox::until_final(const Operation& operation) {
    const auto deadline = Clock::now() + patience;
    auto pause = std::chrono::microseconds(2'000);
    bool hasty = one_in(8);
    for (;;) {
        Result result = send(hasty ? hasty_ : patient_, operation);
        if (result && is_final(result->status, code(result))) {
            return result;
        }
        if (Clock::now() > deadline) {
            verdict_.against(Claim::every_key_gets_its_final_answer,
                             operation.text() + ": in the end " +
                                 (result ? std::to_string(result->status) + " " + result->body
                                         : httplib::to_string(result.error())));
            return Result(nullptr, httplib::Error::Unknown);
        }
        hasty = false;
        std::this_thread::sleep_for(std::uniform_real_distribution(0.5, 1.0)(chance_) * pause);
        pause = std::min(2 * pause, std::chrono::microseconds(64'000));
    }
}

OrdersClient::Result Outbox::send(httplib::Client& through, const Operation& operation) {
    httplib::Request request;
    request.method = operation.method;
    request.path = operation.path;
    request.headers = headers(operation.key);
    if (!operation.body.empty()) {
        request.headers.emplace("Content-Type", "application/json");
        request.body = operation.body;
    }
    if (!operation.if_match.empty()) {
        request.headers.emplace("If-Match", operation.if_match);
    }
    if (!operation.behaviour.empty()) {
        request.headers.emplace("Demo-Behaviour", operation.behaviour);
    }
    ++traffic_.requests;
    Result result = through.send(request);
    ++(result ? traffic_.by_status.at(static_cast<std::size_t>(result->status)) : traffic_.unanswered);
    return result;
}

}  // namespace crash
