// The HTTP stage: one request through claim, handler, answer and commit.
// Called by adapters.
#include "idempotency/stage.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <utility>

#include "answers.hpp"
#include "attempts.hpp"
#include "core/final_status.hpp"
#include "core/sqlstate.hpp"
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

/// idempotency_begin refused the key for the time in it.
bool refuses_key(std::string_view sqlstate) {
    return sqlstate == sqlstate::key_expired || sqlstate == sqlstate::key_from_the_future;
}

}  // namespace

Context::Context(Transaction& transaction, const Operation& operation, const Actor& actor,
                 const std::string& correlation_id, int attempt, Finish finish)
    : transaction_(transaction),
      operation_(operation),
      actor_(actor),
      correlation_id_(correlation_id),
      attempt_(attempt),
      finish_(std::move(finish)) {}

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
          correlation_id_(correlation_id_of(request)),
          deadline_(stage.options_.deadline.count() > 0 ? std::chrono::steady_clock::now() + stage.options_.deadline
                                                        : std::chrono::steady_clock::time_point::max()) {}

    http::Response answer() {
        http::Response response = guarded_answer();
        response.headers.set(std::string(correlation_header), correlation_id_);
        return response;
    }

private:
    /// An answer whose COMMIT is in doubt.
    struct InDoubt {
        std::optional<http::Response> response;  ///< nothing when it was lost with the connection
        Answer answer;
    };

    [[nodiscard]] Observer& observer() const { return stage_.observer_; }
    [[nodiscard]] http::Response problem(const Problem& problem) const {
        return answers::to_response(problem, correlation_id_);
    }

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
            if (operation_.keyed && operation_.key_required && keys.empty() && !actor_.anonymous()) {
                return problem(answers::missing_key());
            }
            if (!operation_.keyed || keys.empty() || actor_.anonymous()) {
                return run([this](const Attempt& attempt) { return unkeyed_attempt(attempt); }, false).value();
            }
            const std::optional<Uuid> key = keys.size() == 1 ? parse_key(keys.front()) : std::nullopt;
            if (!key) {
                return problem(answers::invalid_key());
            }
            return keyed(*key);
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

    /// The request with its key. With several fingerprint keys the first one signs; a row that an older one signed looks like a reuse, so the others
    /// are tried before it is called one.
    http::Response keyed(const Uuid& key) {
        const std::vector<std::string>& hmac_keys = stage_.options_.fingerprint_keys;
        for (std::size_t i = 0;; ++i) {
            const bool last = i + 1 >= hmac_keys.size();
            const KeyedRequest request{*actor_.principal_id, key, operation_.action, fingerprint(hmac_keys, i),
                                       stage_.options_.key_ttl};
            std::optional<http::Response> response =
                run([&](const Attempt& attempt) { return keyed_attempt(attempt, request, last); }, true);
            if (response) {
                return *std::move(response);
            }
        }
    }

    [[nodiscard]] Fingerprint fingerprint(const std::vector<std::string>& hmac_keys, std::size_t i) const {
        thread_local Fingerprinter fingerprinter;
        const CanonicalJsonOptions options{.exact_numbers = stage_.options_.exact_numbers, .cancelled = nullptr};
        const auto value =
            hmac_keys.empty()
                ? fingerprinter.compute(request_.method, request_.path(), request_.body, options)
                : fingerprinter.compute_keyed(hmac_keys[i], request_.method, request_.path(), request_.body, options);
        if (!value) {
            throw std::runtime_error("OpenSSL could not compute SHA-256");
        }
        return *value;
    }

    /// @return what the last attempt returned
    std::optional<http::Response> run(const std::function<std::optional<http::Response>(const Attempt&)>& attempt,
                                      bool has_key) {
        std::optional<http::Response> response;
        run_attempts(
            stage_.source_, stage_.options_.unit_of_work, deadline_,
            [&](const Attempt& current) { response = attempt(current); },
            [&](const Error& error) {
                // With a key, a commit in doubt is resolved by beginning again; without one nobody can tell.
                const bool again = error.retryable() || (has_key && error.in_doubt());
                if (again) {
                    observer().retried(operation_.action, error.sqlstate());
                }
                return again;
            });
        return response;
    }

    /// Runs the handler, and finds out what it did to its transaction.
    http::Response run_handler(const Attempt& attempt, Context& context) const {
        http::Response response = handler_(request_, context);
        if (Transaction::Control::lost(attempt.transaction)) {
            throw ConnectionLost("the handler answered although its connection was lost", in_doubt_.has_value());
        }
        // The handler swallowed an error that only a new transaction mends.
        const std::string& failed_with = Transaction::Control::failed_with(attempt.transaction);
        if (Transaction::Control::failed(attempt.transaction)) {
            const bool is_final = is_final_error(response.status);
            if (is_success(response.status) || (!is_final && Error::is_retryable(failed_with)) ||
                refuses_key(failed_with)) {
                throw Error(failed_with, "the handler answered although its transaction had failed");
            }
        }
        return response;
    }

    std::optional<http::Response> unkeyed_attempt(const Attempt& attempt) {
        const auto finish = [&](std::string_view statement, const std::vector<Parameter>& parameters) {
            const Result row = attempt.transaction.execute(statement, parameters);
            return row.rows() == 0 ? std::nullopt : std::optional(answers::from_row(row));
        };
        Context context(attempt.transaction, operation_, actor_, correlation_id_, attempt.number, finish);
        http::Response response = run_handler(attempt, context);
        if (is_success(response.status)) {
            Transaction::Control::commit(attempt.transaction);
        }
        return response;
    }

    /// @return nothing when the key was reused and that is not to be told yet
    std::optional<http::Response> keyed_attempt(const Attempt& attempt, const KeyedRequest& keyed, bool tell_reuse) {
        try {
            return claimed_attempt(attempt, keyed, tell_reuse);
        } catch (const Error& error) {
            // Of the key's own row, whoever writes it, begin or complete; the application's tables have violations of their own.
            if (error.sqlstate() == foreign_key_violation && error.table().starts_with("idempotency_keys")) {
                return problem(answers::unknown_principal());
            }
            throw;
        }
    }

    std::optional<http::Response> claimed_attempt(const Attempt& attempt, const KeyedRequest& keyed, bool tell_reuse) {
        if (operation_.deferred) {
            stage_.store_.begin_deferred(attempt.transaction, keyed);
        } else if (const BeginResult begun = begin(attempt, keyed); begun.outcome != Outcome::started) {
            return not_started(begun, tell_reuse);
        }
        std::optional<http::Response> response;
        try {
            response = started(attempt, keyed);
        } catch (const ConnectionLost&) {
            throw;
        } catch (...) {
            // Whatever the handler made of it: the key was not ours.
            if (!stage_.store_.refused(attempt.transaction)) {
                throw;
            }
        }
        if (const auto refused = stage_.store_.refused(attempt.transaction)) {
            return not_started(*refused, tell_reuse);
        }
        return response;
    }

    [[nodiscard]] BeginResult begin(const Attempt& attempt, const KeyedRequest& keyed) const {
        const auto before = std::chrono::steady_clock::now();
        BeginResult begun = stage_.store_.begin(attempt.transaction, keyed);
        observer().waited(operation_.action, std::chrono::steady_clock::now() - before);
        return begun;
    }

    std::optional<http::Response> not_started(const BeginResult& begun, bool tell_reuse) {
        switch (begun.outcome) {
            case Outcome::replay:
                return in_doubt_ ? committed(begun.answer) : replayed(begun.answer);
            case Outcome::reuse:
                if (!tell_reuse) {
                    return std::nullopt;
                }
                observer().reused(operation_.action);
                return problem(answers::key_reuse());
            default:
                observer().in_progress(operation_.action);
                return problem(answers::request_in_progress());
        }
    }

    /// The key is ours, or (deferred) the handler's first statement will tell.
    http::Response started(const Attempt& attempt, const KeyedRequest& keyed) {
        if (!operation_.deferred) {
            note_started();
        }
        std::optional<Answer> finished;
        Context context(attempt.transaction, operation_, actor_, correlation_id_, attempt.number,
                        [&](std::string_view statement, std::vector<Parameter> parameters) {
                            finished = finish_with(attempt, keyed, statement, std::move(parameters));
                            return finished ? std::optional(answers::from_answer(*finished)) : std::nullopt;
                        });
        http::Response response = run_handler(attempt, context);
        if (stage_.store_.refused(attempt.transaction)) {
            return response;  // discarded by the caller
        }
        if (finished) {
            // Committed: the handler may add headers, and nothing else.
            note_started_if_deferred();
            response.status = finished->status;
            response.body = finished->body.value_or("");
            observer().stored(operation_.action, response.status);
            answers::set_derived_headers(response, operation_, finished->resource_id);
            return response;
        }
        if (operation_.deferred && Transaction::Control::unsent(attempt.transaction) && !is_success(response.status)) {
            (void)attempt.transaction.native_handle();  // sends the claim: the answer counts only when the key is ours
        }
        if (is_success(response.status)) {
            return complete(attempt, keyed, std::move(response), context.one_time_secret_marked());
        }
        const bool final =
            is_final_error(response.status) && answers::problem_code(response) != answers::request_in_progress().code;
        note_started_if_deferred();
        if (!final) {
            observer().not_stored(operation_.action, response.status);
            return response;
        }
        return save_final(attempt, keyed, std::move(response));
    }

    void note_started_if_deferred() {
        if (operation_.deferred) {
            note_started();
        }
    }

    void note_started() {
        if (std::exchange(in_doubt_, std::nullopt)) {
            observer().in_doubt(operation_.action, false);
        }
        observer().started(operation_.action);
    }

    std::optional<Answer> finish_with(const Attempt& attempt, const KeyedRequest& keyed, std::string_view statement,
                                      std::vector<Parameter> parameters) {
        try {
            return stage_.store_.finish_with(attempt.transaction, keyed, statement, std::move(parameters));
        } catch (const Error& error) {
            if (error.in_doubt()) {
                in_doubt_ = InDoubt{};
            }
            throw;
        }
    }

    http::Response complete(const Attempt& attempt, const KeyedRequest& keyed, http::Response response, bool secret) {
        if (response.body.size() > stage_.options_.response_limit) {
            return unstorable("the answer is larger than response_limit");
        }
        std::optional<Answer> answer = answers::to_store(response);
        if (!answer) {
            return unstorable("the answer to a keyed request is not JSON");
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
                return unstorable("the answer cannot be stored: " + std::string(error.what()));
            }
            if (error.in_doubt()) {
                in_doubt_ = InDoubt{std::move(response), *answer};
            }
            throw;
        }
        note_started_if_deferred();
        observer().stored(operation_.action, response.status);
        if (!hide) {
            response.body = stored.value_or("");
        }
        answers::set_derived_headers(response, operation_, answer->resource_id);
        return response;
    }

    /// The answer is right whether or not it could be stored: the effect was rolled back.
    http::Response save_final(const Attempt& attempt, const KeyedRequest& keyed, http::Response response) {
        const std::optional<Answer> answer = answers::to_store(response);
        if (!answer || response.body.size() > stage_.options_.response_limit) {
            observer().unstorable(operation_.action,
                                  "a final error was not stored: it is not JSON, or larger than response_limit");
            return response;
        }
        try {
            Transaction transaction = Transaction::Control::reopen(attempt.transaction, stage_.options_.unit_of_work);
            response.body = stage_.store_.save_final(transaction, keyed, *answer).value_or("");
            observer().stored(operation_.action, response.status);
        } catch (const Error& error) {
            const std::string reason = "a final error was not stored: " + std::string(error.what());
            is_data_exception(error) ? observer().unstorable(operation_.action, reason)
                                     : observer().failed(operation_.action, reason);
        }
        answers::set_derived_headers(response, operation_, answer->resource_id);
        return response;
    }

    [[nodiscard]] http::Response replayed(const Answer& answer) const {
        if (stage_.options_.authorize_replay) {
            if (const auto refusal = stage_.options_.authorize_replay(actor_, operation_, request_)) {
                return problem(*refusal);
            }
        }
        observer().replayed(operation_.action, answer.status);
        return answers::replay(answer, operation_, correlation_id_);
    }

    /// A commit was in doubt, and a row is there. It is ours when it names the resource that we made; else a duplicate of this request
    /// came first, and its answer is the one.
    http::Response committed(const Answer& stored) {
        const InDoubt ours = *std::exchange(in_doubt_, std::nullopt);
        const bool same =
            !ours.response || (stored.status == ours.answer.status && stored.resource_id == ours.answer.resource_id &&
                               stored.body.has_value() == ours.answer.body.has_value());
        observer().in_doubt(operation_.action, same);
        if (!same || !ours.response || !stored.resource_id) {
            return replayed(stored);
        }
        http::Response response = *ours.response;
        if (!answers::is_one_time_secret(stored)) {
            response.body = stored.body.value_or("");
        }
        answers::set_derived_headers(response, operation_, stored.resource_id);
        return response;
    }

    [[nodiscard]] http::Response database_problem(const Error& error) const {
        const Problem answer = answers::of_database_error(error);
        if (answer.status == 409) {
            observer().in_progress(operation_.action);
        } else if (refuses_key(error.sqlstate())) {
            observer().expired(operation_.action);
        } else {
            observer().failed(operation_.action, error.sqlstate() + ": " + error.what());
        }
        return problem(answer);
    }

    [[nodiscard]] http::Response unstorable(std::string_view reason) const {
        observer().unstorable(operation_.action, reason);
        return problem(answers::internal_error());
    }

    [[nodiscard]] http::Response internal_error(std::string_view reason) const {
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
    std::chrono::steady_clock::time_point deadline_;
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
    return handle(none, [&](const http::Request&) { return problem; }, request, {});
}

}  // namespace idempotency
