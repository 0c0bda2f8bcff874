// What a Connection holds: the libpq handle, and the names of the statements that were prepared on it.
// Used by connection.cpp and transaction.cpp.
#pragma once

#include <libpq-fe.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "idempotency/connection.hpp"

namespace idempotency {

struct Connection::State {
    struct Finish {
        void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
    };

    std::unique_ptr<PGconn, Finish> handle;
    std::map<std::string, std::string, std::less<>> prepared;  ///< SQL text to the statement's name
    unsigned names_given = 0;                                  ///< a name is not used twice

    /// Names that were forgotten (StaleStatement) still take the server's memory: a connection with this many is replaced.
    static constexpr unsigned most_names = 1024;
};

/// libpq's messages end with a line feed.
[[nodiscard]] inline std::string message_of(const PGconn* connection) {
    std::string message = PQerrorMessage(connection);
    while (!message.empty() && message.back() == '\n') {
        message.pop_back();
    }
    return message;
}

}  // namespace idempotency
