// One connection to the server, statement after statement.
// Used by the anomaly tests, which look at what a statement brought and go on with the same session.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>
#include <vector>

/// What one statement brought.
struct Reply {
    std::string sqlstate;  ///< empty: it succeeded; "no connection": the session has ended
    std::string message;
    std::string detail;
    std::string hint;
    std::string value;  ///< columns and rows joined by |
};

class Session {
public:
    explicit Session(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str()), PQfinish) {
        PQsetNoticeProcessor(
            connection_.get(), [](void*, const char*) {}, nullptr);
    }

    Reply run(const std::string& sql) const {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection_.get(), sql.c_str()), PQclear);
        const auto field = [&](int code) {
            const char* const text = PQresultErrorField(result.get(), code);
            return std::string(text != nullptr ? text : "");
        };
        Reply reply;
        const ExecStatusType status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            reply.sqlstate = field(PG_DIAG_SQLSTATE).empty() ? "no connection" : field(PG_DIAG_SQLSTATE);
            reply.message = field(PG_DIAG_MESSAGE_PRIMARY);
            reply.detail = field(PG_DIAG_MESSAGE_DETAIL);
            reply.hint = field(PG_DIAG_MESSAGE_HINT);
        }
        for (int row = 0; row < PQntuples(result.get()); ++row) {
            for (int column = 0; column < PQnfields(result.get()); ++column) {
                reply.value += (reply.value.empty() ? "" : "|") + std::string(PQgetvalue(result.get(), row, column));
            }
        }
        return reply;
    }

    /// One statement after the other, up to the first that fails.
    Reply run(const std::vector<std::string>& statements) const {
        Reply all;
        for (const std::string& statement : statements) {
            Reply one = run(statement);
            if (!one.sqlstate.empty()) {
                return one;
            }
            all.value += (all.value.empty() || one.value.empty() ? "" : "|") + one.value;
        }
        return all;
    }

    [[nodiscard]] bool in_transaction_block() const { return PQtransactionStatus(connection_.get()) != PQTRANS_IDLE; }

    [[nodiscard]] std::string process_id() const { return std::to_string(PQbackendPID(connection_.get())); }

private:
    std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
};
