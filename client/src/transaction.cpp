// Statements and transactions on libpq's pipeline mode.
// Called by handlers (execute) and by the shim (Control).
#include "idempotency/transaction.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "connection_state.hpp"
#include "idempotency/error.hpp"
#include "idempotency/store.hpp"
#include "transaction_control.hpp"

namespace idempotency {
namespace {

struct ClearResult {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using ResultHandle = std::unique_ptr<PGresult, ClearResult>;

std::string field(const PGresult* result, int code) {
    const char* const text = PQresultErrorField(result, code);
    return text != nullptr ? text : "";
}

Error error_of(const PGresult* result) {
    return {field(result, PG_DIAG_SQLSTATE), field(result, PG_DIAG_MESSAGE_PRIMARY),
            field(result, PG_DIAG_MESSAGE_DETAIL), field(result, PG_DIAG_MESSAGE_HINT),
            field(result, PG_DIAG_TABLE_NAME)};
}

/// What one flush of the pipeline brought.
struct Answers {
    std::vector<Result> results;  ///< of the statements, in order; those behind a failed one are missing
    std::optional<Error> error;   ///< of the first that failed
    std::size_t failed_at = 0;    ///< its position
    bool lost = false;            ///< the connection is gone, or libpq lost an answer
    std::string last_command;     ///< what the last statement says that it did
};

/// Reads results up to the pipeline's synchronisation point.
Answers read_answers(PGconn* connection) {
    Answers answers;
    int results_in_a_row_missing = 0;
    for (;;) {
        ResultHandle result(PQgetResult(connection));
        if (!result) {
            // One null ends each statement; two mean that nothing more will come.
            if (PQstatus(connection) != CONNECTION_OK || ++results_in_a_row_missing > 1) {
                answers.lost = true;
                return answers;
            }
            continue;
        }
        results_in_a_row_missing = 0;
        switch (PQresultStatus(result.get())) {
            case PGRES_COMMAND_OK:
            case PGRES_TUPLES_OK:
            case PGRES_EMPTY_QUERY: {
                answers.last_command = PQcmdStatus(result.get());
                // Owned before the vector grows, for which there may be no memory.
                Result owned(result.release());
                answers.results.push_back(std::move(owned));
                break;
            }
            case PGRES_PIPELINE_ABORTED:
                break;
            case PGRES_PIPELINE_SYNC:
                return answers;
            default: {
                const Error error = error_of(result.get());
                if (!answers.error) {
                    answers.failed_at = answers.results.size();
                    answers.error = error;
                }
                // Not the server's but libpq's own: it had no memory for what came, be it the synchronisation point or the answer of COMMIT.
                if (error.sqlstate().empty()) {
                    answers.lost = true;
                    return answers;
                }
            }
        }
    }
}

constexpr const char* begin_sql = "BEGIN";

/// Statements beyond this are parsed each time: an application that builds its SQL text would fill the server's memory.
constexpr std::size_t most_prepared_statements = 256;

constexpr std::string_view feature_not_supported = "0A000";
constexpr std::string_view invalid_sql_statement_name = "26000";

}  // namespace

Result::Result(pg_result* owned) : result_(owned, PQclear) {}

std::size_t Result::rows() const noexcept { return static_cast<std::size_t>(PQntuples(result_.get())); }

std::size_t Result::columns() const noexcept { return static_cast<std::size_t>(PQnfields(result_.get())); }

std::optional<std::string_view> Result::get(std::size_t row, std::size_t column) const noexcept {
    if (row >= rows() || column >= columns()) {
        return std::nullopt;
    }
    const int r = static_cast<int>(row);
    const int c = static_cast<int>(column);
    if (PQgetisnull(result_.get(), r, c) != 0) {
        return std::nullopt;
    }
    return std::string_view(PQgetvalue(result_.get(), r, c),
                            static_cast<std::size_t>(PQgetlength(result_.get(), r, c)));
}

std::uint64_t Result::affected() const noexcept { return std::strtoull(PQcmdTuples(result_.get()), nullptr, 10); }

Transaction::~Transaction() { Control::rollback(*this); }

Result Transaction::execute(std::string_view sql, const std::vector<Parameter>& parameters) {
    return Control::execute(*this, sql, parameters);
}

PGconn* Transaction::native_handle() {
    if (!queue_.empty()) {
        Control::execute(*this, "SELECT", {});  // sends BEGIN
    }
    return connection_.native_handle();
}

bool Transaction::Control::lost(const Transaction& transaction) noexcept {
    PGconn* const connection = transaction.connection_.native_handle();
    // Between two statements the pipeline is on when a flush was cut short: then nobody knows any more what the next answer belongs to.
    return PQstatus(connection) != CONNECTION_OK || PQpipelineStatus(connection) != PQ_PIPELINE_OFF;
}

bool Transaction::Control::failed(const Transaction& transaction) noexcept {
    return PQtransactionStatus(transaction.connection_.native_handle()) == PQTRANS_INERROR;
}

Transaction Transaction::Control::open(Connection& connection, const UnitOfWorkOptions& options) {
    return {connection, options.prepared_statements, opening(options.lock_timeout)};
}

Transaction Transaction::Control::reopen(Transaction& before, const UnitOfWorkOptions& options) {
    std::vector<Statement> statements = opening(options.lock_timeout);
    before.queue_.clear();
    if (before.begun_ && !std::exchange(before.ended_, true)) {
        statements.insert(statements.begin(), {"ROLLBACK", {}});
    }
    return {before.connection_, options.prepared_statements, std::move(statements)};
}

Result Transaction::Control::execute(Transaction& transaction, std::string_view sql,
                                     std::vector<Parameter> parameters) {
    transaction.queue_.push_back({std::string(sql), std::move(parameters)});
    return flush(transaction, Ending::open).back();
}

void Transaction::Control::queue_claim(Transaction& transaction, std::string sql, std::vector<Parameter> parameters) {
    transaction.queue_.push_back({std::move(sql), std::move(parameters), true});
}

Result Transaction::Control::claim(Transaction& transaction, std::string sql, std::vector<Parameter> parameters) {
    transaction.queue_.push_back({std::move(sql), std::move(parameters)});
    return flush(transaction, Ending::open).back();
}

Result Transaction::Control::execute_and_commit(Transaction& transaction, std::string_view sql,
                                                std::vector<Parameter> parameters) {
    if (!transaction.begun_) {
        // BEGIN falls away, and SET LOCAL would have no transaction block to be local to.
        std::erase_if(transaction.queue_, [](const Statement& statement) { return statement.sql == begin_sql; });
        transaction.queue_.push_back({std::string(sql), std::move(parameters)});
        return flush(transaction, Ending::implicit).back();
    }
    transaction.queue_.push_back({std::string(sql), std::move(parameters)});
    transaction.queue_.push_back({"COMMIT", {}});
    std::vector<Result> results = flush(transaction, Ending::commit);
    return results[results.size() - 2];
}

void Transaction::Control::commit(Transaction& transaction) {
    if (!transaction.begun_) {
        transaction.queue_.clear();
        transaction.ended_ = true;
        return;
    }
    transaction.queue_.push_back({"COMMIT", {}});
    flush(transaction, Ending::commit);
}

void Transaction::Control::rollback(Transaction& transaction) noexcept {
    transaction.queue_.clear();
    if (std::exchange(transaction.ended_, true) || !transaction.begun_) {
        return;
    }
    PGconn* const connection = transaction.connection_.native_handle();
    if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF) {
        return;  // a flush was cut short: the connection is not reusable, and closing it rolls back
    }
    ResultHandle(PQexec(connection, "ROLLBACK"));
}

std::vector<Transaction::Statement> Transaction::Control::opening(std::chrono::milliseconds lock_timeout) {
    // set_config and not SET LOCAL: it works in the implicit transaction between two synchronisation points too. The commit guard is on in our
    // transactions, whatever the server's setting: finish_with relies on it.
    return {{begin_sql, {}},
            {"SELECT set_config('lock_timeout', $1, true), set_config('idempotency.require_complete', 'on', true)",
             {std::to_string(lock_timeout.count()) + "ms"}}};
}

Transaction::Control::Sent Transaction::Control::send(Transaction& transaction,
                                                      const std::vector<Statement>& statements) {
    Connection::State& state = transaction.connection_.state();
    PGconn* const connection = state.handle.get();
    Sent sent;
    std::size_t answers = 0;
    bool ok = PQenterPipelineMode(connection) == 1;
    for (const Statement& statement : statements) {
        std::vector<const char*> values;
        for (const Parameter& parameter : statement.parameters) {
            values.push_back(parameter.c_str());
        }
        const int count = static_cast<int>(values.size());
        auto known = state.prepared.find(statement.sql);
        if (ok && transaction.prepared_statements_ && known == state.prepared.end() &&
            state.prepared.size() < most_prepared_statements) {
            const std::string name = "idempotency_" + std::to_string(++state.names_given);
            ok = PQsendPrepare(connection, name.c_str(), statement.sql.c_str(), 0, nullptr) == 1;
            known = state.prepared.emplace(statement.sql, name).first;
            sent.newly_prepared.emplace_back(answers++, statement.sql);
        }
        if (transaction.prepared_statements_ && known != state.prepared.end()) {
            ok = ok &&
                 PQsendQueryPrepared(connection, known->second.c_str(), count, values.data(), nullptr, nullptr, 0) == 1;
        } else {
            ok = ok && PQsendQueryParams(connection, statement.sql.c_str(), count, nullptr, values.data(), nullptr,
                                         nullptr, 0) == 1;
        }
        sent.answer_of.push_back(answers++);
    }
    sent.complete = ok && PQpipelineSync(connection) == 1;
    return sent;
}

void Transaction::Control::fail(Transaction& transaction, const Error& error, bool statement_was_known) {
    if (transaction.failed_with_.empty()) {
        transaction.failed_with_ = error.sqlstate();
    }
    // "cached plan must not change result type", or the server knows no such name. Anything else of the first SQLSTATE comes again when
    // the statement is prepared anew.
    const bool stale = error.sqlstate() == feature_not_supported || error.sqlstate() == invalid_sql_statement_name;
    auto& prepared = transaction.connection_.state().prepared;
    if (stale && statement_was_known && !prepared.empty()) {
        prepared.clear();
        throw StaleStatement(error);
    }
    throw error;
}

std::vector<Result> Transaction::Control::flush(Transaction& transaction, Ending ending) {
    Connection& owner = transaction.connection_;
    PGconn* const connection = owner.native_handle();
    const std::vector<Statement> statements = std::exchange(transaction.queue_, {});
    if (transaction.refused_) {
        throw KeyNotStarted();
    }
    if (transaction.ended_) {
        throw Error("25P01", "the transaction has ended");
    }
    transaction.begun_ = true;
    transaction.ended_ = ending != Ending::open;

    const Sent sent = send(transaction, statements);
    const Answers answers = sent.complete ? read_answers(connection) : Answers{{}, {}, 0, true, {}};
    if (answers.lost || PQstatus(connection) != CONNECTION_OK) {
        transaction.ended_ = true;
        const bool told_by_server = answers.error && !answers.error->sqlstate().empty();
        const std::string reason = told_by_server ? answers.error->what() : message_of(connection);
        throw ConnectionLost("connection lost: " + reason, ending != Ending::open);
    }
    PQexitPipelineMode(connection);
    // An error in front of COMMIT leaves the transaction open; one of COMMIT itself has ended it.
    transaction.ended_ = transaction.ended_ && PQtransactionStatus(connection) == PQTRANS_IDLE;
    if (answers.error) {
        for (const auto& [position, sql] : sent.newly_prepared) {
            if (position >= answers.failed_at) {
                owner.state().prepared.erase(sql);
            }
        }
    }
    for (std::size_t i = 0; i < statements.size(); ++i) {
        const std::size_t answer = sent.answer_of[i];
        if (statements[i].is_claim && answer < answers.results.size() && !Store::started(answers.results[answer])) {
            transaction.refused_ = answers.results[answer];
            throw KeyNotStarted();
        }
    }
    if (answers.error) {
        const bool newly_prepared = std::ranges::any_of(sent.newly_prepared, [&](const auto& one) {
            return one.first + 1 == answers.failed_at || one.first == answers.failed_at;
        });
        fail(transaction, *answers.error, !newly_prepared);
    }
    // COMMIT of a failed transaction succeeds, and says that it rolled back.
    if (ending == Ending::commit && answers.last_command == "ROLLBACK") {
        throw Error("25P02", "the transaction had failed and was rolled back");
    }
    std::vector<Result> results;
    for (const std::size_t answer : sent.answer_of) {
        results.push_back(answers.results[answer]);
    }
    return results;
}

}  // namespace idempotency
