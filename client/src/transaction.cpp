// Statements and transactions on libpq's pipeline mode.
// Called by handlers (execute) and by the shim (Control).
#include "idempotency/transaction.hpp"

#include <libpq-fe.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "connection_state.hpp"
#include "idempotency/error.hpp"
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
    return Error(field(result, PG_DIAG_SQLSTATE), field(result, PG_DIAG_MESSAGE_PRIMARY),
                 field(result, PG_DIAG_MESSAGE_DETAIL), field(result, PG_DIAG_MESSAGE_HINT));
}

/// What one flush of the pipeline brought.
struct Answers {
    std::vector<ResultHandle> results;  ///< of the statements, in order; those behind a failed one are missing
    std::optional<Error> error;         ///< of the first that failed
    std::size_t failed_at = 0;          ///< its position
    bool lost = false;                  ///< the connection is gone
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
            case PGRES_EMPTY_QUERY:
                answers.results.push_back(std::move(result));
                break;
            case PGRES_PIPELINE_ABORTED:
                break;
            case PGRES_PIPELINE_SYNC:
                return answers;
            default:
                if (!answers.error) {
                    answers.failed_at = answers.results.size();
                    answers.error = error_of(result.get());
                }
        }
    }
}

}  // namespace

Result::Result(pg_result* owned) noexcept : result_(owned, PQclear) {}

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
    return std::string_view(PQgetvalue(result_.get(), r, c), static_cast<std::size_t>(PQgetlength(result_.get(), r, c)));
}

std::uint64_t Result::affected() const noexcept { return std::strtoull(PQcmdTuples(result_.get()), nullptr, 10); }

Transaction::~Transaction() { Control::rollback(*this); }

Result Transaction::execute(std::string_view sql, const std::vector<Parameter>& parameters) {
    return Control::execute(*this, sql, parameters, false);
}

PGconn* Transaction::native_handle() {
    if (!queue_.empty()) {
        Control::execute(*this, "SELECT", {}, false);  // sends BEGIN
    }
    return connection_.native_handle();
}

bool Transaction::Control::failed(const Transaction& transaction) noexcept {
    return PQtransactionStatus(transaction.connection_.native_handle()) == PQTRANS_INERROR;
}

Transaction Transaction::Control::open(Connection& connection, std::chrono::milliseconds lock_timeout) {
    return Transaction(connection, {{"BEGIN", {}, false},
                                    {"SET LOCAL lock_timeout = " + std::to_string(lock_timeout.count()), {}, false}});
}

Result Transaction::Control::execute(Transaction& transaction, std::string_view sql, std::vector<Parameter> parameters,
                                     bool prepared) {
    transaction.queue_.push_back({std::string(sql), std::move(parameters), prepared});
    return flush(transaction, false).back();
}

Result Transaction::Control::execute_and_commit(Transaction& transaction, std::string_view sql,
                                                std::vector<Parameter> parameters, bool prepared) {
    transaction.queue_.push_back({std::string(sql), std::move(parameters), prepared});
    transaction.queue_.push_back({"COMMIT", {}, false});
    std::vector<Result> results = flush(transaction, true);
    return results[results.size() - 2];
}

void Transaction::Control::commit(Transaction& transaction) {
    if (!transaction.begun_) {
        transaction.queue_.clear();
        transaction.ended_ = true;
        return;
    }
    transaction.queue_.push_back({"COMMIT", {}, false});
    flush(transaction, true);
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

std::vector<Result> Transaction::Control::flush(Transaction& transaction, bool committing) {
    Connection& owner = transaction.connection_;
    PGconn* const connection = owner.native_handle();
    const std::vector<Statement> statements = std::exchange(transaction.queue_, {});
    if (transaction.ended_) {
        throw Error("25P01", "the transaction has ended");
    }
    transaction.begun_ = true;
    transaction.ended_ = committing;

    // A statement that is prepared now has two answers, PREPARE's and its own.
    std::vector<std::size_t> answer_of;
    std::vector<std::pair<std::size_t, std::string>> newly_prepared;  // position of the answer, SQL text
    std::size_t sent = 0;
    bool ok = PQenterPipelineMode(connection) == 1;
    for (const Statement& statement : statements) {
        std::vector<const char*> values;
        for (const Parameter& parameter : statement.parameters) {
            values.push_back(parameter.c_str());
        }
        const int count = static_cast<int>(values.size());
        if (statement.prepared) {
            auto& prepared = owner.state().prepared;
            auto known = prepared.find(statement.sql);
            if (known == prepared.end()) {
                const std::string name = "idempotency_" + std::to_string(++owner.state().names_given);
                ok = ok && PQsendPrepare(connection, name.c_str(), statement.sql.c_str(), 0, nullptr) == 1;
                known = prepared.emplace(statement.sql, name).first;
                newly_prepared.emplace_back(sent++, statement.sql);
            }
            ok = ok && PQsendQueryPrepared(connection, known->second.c_str(), count, values.data(), nullptr, nullptr, 0) == 1;
        } else {
            ok = ok && PQsendQueryParams(connection, statement.sql.c_str(), count, nullptr, values.data(), nullptr, nullptr,
                                         0) == 1;
        }
        answer_of.push_back(sent++);
    }
    ok = ok && PQpipelineSync(connection) == 1;
    Answers answers;
    if (ok) {
        answers = read_answers(connection);
    } else {
        answers.lost = true;
    }
    if (answers.lost || PQstatus(connection) != CONNECTION_OK) {
        transaction.ended_ = true;
        const std::string reason = answers.error ? answers.error->what() : message_of(connection);
        throw ConnectionLost("connection lost: " + reason, committing);
    }
    PQexitPipelineMode(connection);
    if (answers.error) {
        for (const auto& [position, sql] : newly_prepared) {
            if (position >= answers.failed_at) {
                owner.state().prepared.erase(sql);
            }
        }
        if (transaction.failed_with_.empty()) {
            transaction.failed_with_ = answers.error->sqlstate();
        }
        // A failed statement in front of COMMIT leaves the transaction open; a failed COMMIT has ended it.
        transaction.ended_ = PQtransactionStatus(connection) == PQTRANS_IDLE;
        throw *answers.error;
    }
    // COMMIT of a failed transaction succeeds, and says that it rolled back.
    if (committing && std::string_view(PQcmdStatus(answers.results.back().get())) == "ROLLBACK") {
        throw Error("25P02", "the transaction had failed and was rolled back");
    }
    std::vector<Result> results;
    for (const std::size_t answer : answer_of) {
        results.emplace_back(answers.results[answer].release());
    }
    return results;
}

}  // namespace idempotency
