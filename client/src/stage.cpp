// The HTTP stage: one request through claim, handler, answer and commit.
// Called by adapters.
#include "idempotency/stage.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "answers.hpp"
#include "attempts.hpp"
#include "core/final_status.hpp"
#include "transaction_control.hpp"

namespace idempotency {
namespace {

constexpr std::string_view key_header = "Idempotency-Key";
constexpr std::string_view correlation_header = "Correlation-Id";
constexpr std::size_t correlation_id_limit = 128;

Observer& silent_observer() {
    static Observer silent;
    return silent;
}

/// The request's Correlation-Id when it is one word of visible characters, else a new random UUID.
std::string correlation_id_of(const http::Request& request) {
    const auto given = request.headers.get(correlation_header).value_or("");
    const auto visible = [](char c) { return c > 0x20 && c < 0x7F; };
    if (!given.empty() && given.size() <= correlation_id_limit && std::ranges::all_of(given, visible)) {
        return std::string(given);
    }
    Uuid random;
    RAND_bytes(random.bytes.data(), static_cast<int>(random.bytes.size()));
    random.bytes[6] = static_cast<std::uint8_t>((random.bytes[6] & 0x0F) | 0x40);
    random.bytes[8] = static_cast<std::uint8_t>((random.bytes[8] & 0x3F) | 0x80);
    return random.to_string();
}

/// SQLSTATE class 22: the database cannot hold the answer (not JSON, \u0000, a number beyond its range, ...).
bool is_data_exception(const Error& error) { return error.sqlstate().starts_with("22"); }

constexpr std::string_view foreign_key_violation = "23503";

}  // namespace

Context::Context(Transaction& transaction, const Operation& operation, const Actor& actor, const std::string& correlation_id,
                 int attempt)
    : transaction_(transaction),
      operation_(operation),
      actor_(actor),
      correlation_id_(correlation_id),
      attempt_(attempt) {}

/// One request.
class Stage::Run {
public:
    Run(const Stage& stage, const Operation& operation, const Authenticate& authenticate, const http::Request& request,
        const Handler& handler)
        : stage_(stage),
          operation_(operation),
          authenticate_(authenticate),
          request_(request),
          handler_(handler),
          correlation_id_(correlation_id_of(request)) {}

    http::Response answer() {
        http::Response response = guarded_answer();
        response.headers.set(std::string(correlation_header), correlation_id_);
        return response;
    }

private:
    /// An answer whose COMMIT is in doubt.
    struct InDoubt {
        http::Response response;
        Answer answer;
    };

    [[nodiscard]] Observer& observer() const { return stage_.observer_; }
    [[nodiscard]] http::Response problem(const Problem& problem) const { return answers::to_response(problem, correlation_id_); }

    http::Response guarded_answer() {
        try {
            const std::variant<Actor, Problem> authenticated = authenticate_(request_);
            if (const auto* const refusal = std::get_if<Problem>(&authenticated)) {
                return problem(*refusal);
            }
            actor_ = std::get<Actor>(authenticated);
            if (request_.body.size() > operation_.body_limit) {
                return problem(answers::body_too_large(operation_.body_limit));
            }
            const std::vector<std::string_view> keys = request_.headers.all(key_header);
            if (!operation_.keyed || keys.empty() || actor_.anonymous()) {
                return run([this](const Attempt& attempt) { return unkeyed_attempt(attempt); }, false);
            }
            const std::optional<Uuid> key = keys.size() == 1 ? parse_key(keys.front()) : std::nullopt;
            if (!key) {
                return problem(answers::invalid_key());
            }
            const KeyedRequest keyed = keyed_request(*key);
            return run([&](const Attempt& attempt) { return keyed_attempt(attempt, keyed); }, true);
        } catch (const Error& error) {
            return database_problem(error);
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& error) {
            return internal_error(error.what());
        } catch (...) {
            return internal_error("the handler threw something that is no std::exception");
        }
    }

    KeyedRequest keyed_request(const Uuid& key) const {
        thread_local Fingerprinter fingerprinter;
        const auto fingerprint = fingerprinter.compute(request_.method, request_.path(), request_.body);
        if (!fingerprint) {
            throw std::runtime_error("OpenSSL could not compute SHA-256");
        }
        return {*actor_.principal_id, key, operation_.action, *fingerprint, stage_.options_.key_ttl};
    }

    http::Response run(const std::function<http::Response(const Attempt&)>& attempt, bool keyed) {
        http::Response response;
        run_attempts(
            stage_.source_, stage_.options_.unit_of_work, [&](const Attempt& current) { response = attempt(current); },
            [&](const Error& error) {
                // With a key, a commit in doubt is resolved by beginning again; without one nobody can tell.
                const bool again = error.retryable() || (keyed && error.in_doubt());
                if (again) {
                    observer().retried(operation_.action, error.sqlstate());
                }
                return again;
            });
        return response;
    }

    http::Response run_handler(const Attempt& attempt, Context& context) const {
        http::Response response = handler_(request_, context);
        // The handler swallowed an error that only a new transaction mends.
        const std::string& failed_with = Transaction::Control::failed_with(attempt.transaction);
        if (Transaction::Control::failed(attempt.transaction) && !is_final_error(response.status)) {
            if (is_success(response.status) || Error::is_retryable(failed_with)) {
                throw Error(failed_with, "the handler answered although its transaction had failed");
            }
        }
        return response;
    }

    http::Response unkeyed_attempt(const Attempt& attempt) {
        Context context(attempt.transaction, operation_, actor_, correlation_id_, attempt.number);
        http::Response response = run_handler(attempt, context);
        if (is_success(response.status)) {
            Transaction::Control::commit(attempt.transaction);
        }
        return response;
    }

    http::Response keyed_attempt(const Attempt& attempt, const KeyedRequest& keyed) {
        BeginResult begun;
        try {
            begun = stage_.store_.begin(attempt.transaction, keyed);
        } catch (const Error& error) {
            if (error.sqlstate() == foreign_key_violation) {
                return problem(answers::unknown_principal());
            }
            throw;
        }
        switch (begun.outcome) {
            case Outcome::replay:
                return in_doubt_ ? committed(begun.answer) : replayed(begun.answer);
            case Outcome::reuse:
                observer().reused(operation_.action);
                return problem(answers::key_reuse());
            case Outcome::in_progress:
                observer().in_progress(operation_.action);
                return problem(answers::request_in_progress());
            case Outcome::started:
                break;
        }
        if (std::exchange(in_doubt_, std::nullopt)) {
            observer().in_doubt(operation_.action, false);
        }
        observer().started(operation_.action);
        Context context(attempt.transaction, operation_, actor_, correlation_id_, attempt.number);
        http::Response response = run_handler(attempt, context);
        if (is_success(response.status)) {
            return complete(attempt, keyed, std::move(response), context.one_time_secret_marked());
        }
        Transaction::Control::rollback(attempt.transaction);
        const bool final = is_final_error(response.status) &&
                           answers::problem_code(response) != answers::request_in_progress().code;
        if (!final) {
            observer().not_stored(operation_.action, response.status);
            return response;
        }
        return save_final(attempt, keyed, std::move(response));
    }

    http::Response complete(const Attempt& attempt, const KeyedRequest& keyed, http::Response response, bool secret) {
        if (response.body.size() > stage_.options_.response_limit) {
            return internal_error("the answer is larger than response_limit");
        }
        std::optional<Answer> answer = answers::to_store(response);
        if (!answer) {
            return internal_error("the answer to a keyed request is not JSON");
        }
        if (!answer->body) {
            response.body.clear();
        }
        const bool hide = secret && answer->body;
        if (hide) {
            answer->body = answers::one_time_secret_body;
        }
        std::optional<std::string> stored;
        try {
            stored = stage_.store_.complete_and_commit(attempt.transaction, keyed, *answer);
        } catch (const Error& error) {
            if (is_data_exception(error)) {
                return internal_error("the answer cannot be stored: " + std::string(error.what()));
            }
            if (error.in_doubt()) {
                in_doubt_ = InDoubt{std::move(response), *answer};
            }
            throw;
        }
        observer().stored(operation_.action, response.status);
        if (!hide) {
            response.body = stored.value_or("");
        }
        answers::set_derived_headers(response, operation_);
        return response;
    }

    /// The answer is right whether or not it could be stored: the effect was rolled back.
    http::Response save_final(const Attempt& attempt, const KeyedRequest& keyed, http::Response response) {
        const std::optional<Answer> answer = answers::to_store(response);
        if (!answer || response.body.size() > stage_.options_.response_limit) {
            observer().failed(operation_.action, "a final error was not stored: it is not JSON, or larger than response_limit");
            return response;
        }
        try {
            Transaction transaction =
                Transaction::Control::open(attempt.connection, stage_.options_.unit_of_work.lock_timeout);
            response.body = stage_.store_.save_final(transaction, keyed, *answer).value_or("");
            observer().stored(operation_.action, response.status);
        } catch (const Error& error) {
            observer().failed(operation_.action, "a final error was not stored: " + std::string(error.what()));
        }
        answers::set_derived_headers(response, operation_);
        return response;
    }

    http::Response replayed(const Answer& answer) const {
        observer().replayed(operation_.action, answer.status);
        return answers::replay(answer, operation_, correlation_id_);
    }

    /// A commit was in doubt, and a row is there. It is ours when it names the resource that we made; else a duplicate of this request
    /// came first, and its answer is the one.
    http::Response committed(const Answer& stored) {
        InDoubt ours = std::move(*in_doubt_);
        in_doubt_.reset();
        const bool same = stored.status == ours.answer.status && stored.resource_id == ours.answer.resource_id &&
                          stored.body.has_value() == ours.answer.body.has_value();
        observer().in_doubt(operation_.action, same);
        if (!same || !stored.resource_id) {
            return replayed(stored);
        }
        if (!answers::is_one_time_secret(stored)) {
            ours.response.body = stored.body.value_or("");
        }
        answers::set_derived_headers(ours.response, operation_);
        return std::move(ours.response);
    }

    http::Response database_problem(const Error& error) const {
        const Problem answer = answers::of_database_error(error);
        if (answer.status == 409) {
            observer().in_progress(operation_.action);
        } else {
            observer().failed(operation_.action, error.sqlstate() + ": " + error.what());
        }
        return problem(answer);
    }

    http::Response internal_error(std::string_view reason) const {
        observer().failed(operation_.action, reason);
        return problem(answers::internal_error());
    }

    const Stage& stage_;
    const Operation& operation_;
    const Authenticate& authenticate_;
    const http::Request& request_;
    const Handler& handler_;
    Actor actor_;
    std::string correlation_id_;
    std::optional<InDoubt> in_doubt_;
};

Stage::Stage(ConnectionSource& source, StageOptions options)
    : source_(source),
      options_(std::move(options)),
      store_(options_.store),
      observer_(options_.observer != nullptr ? *options_.observer : silent_observer()) {}

http::Response Stage::handle(const Operation& operation, const Actor& actor, const http::Request& request,
                             const Handler& handler) const {
    return handle(
        operation, [&](const http::Request&) { return actor; }, request, handler);
}

http::Response Stage::handle(const Operation& operation, const Authenticate& authenticate, const http::Request& request,
                             const Handler& handler) const {
    return Run(*this, operation, authenticate, request, handler).answer();
}

http::Response Stage::refuse(const http::Request& request, const Problem& problem) const {
    static const Operation none;
    return handle(
        none, [&](const http::Request&) { return problem; }, request, {});
}

}  // namespace idempotency
