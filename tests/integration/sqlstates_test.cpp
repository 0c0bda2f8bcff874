// Every SQLSTATE that the server knows, thrown by a handler, is answered as docs/errors.md says.
// Run by ctest against a real server.
#include <fstream>
#include <regex>

#include "stage_fixture.hpp"

namespace {

using Sqlstates = StageTest;

/// One row of the table "What becomes of a database error that a handler lets through".
struct Row {
    std::string sqlstates;
    int status;
};

/// The rows for errors of handlers; the last one is for every other.
std::vector<Row> documented() {
    std::ifstream page(SOURCE_FOLDER "/docs/errors.md");
    std::vector<Row> rows;
    bool in_table = false;
    for (std::string line; std::getline(page, line);) {
        in_table = in_table || line.starts_with("What becomes of a database error");
        std::smatch cells;
        if (in_table && std::regex_match(line, cells, std::regex(R"(\| (.*) \| (.*) \|)")) &&
            cells.str(1).find("from") == std::string::npos && cells.str(1).find("lost") == std::string::npos) {
            const std::string answer = cells.str(2);
            std::smatch status;
            if (std::regex_match(answer, status, std::regex(R"((.*\D)?(\d\d\d)\b.*?)"))) {
                rows.push_back({cells.str(1), std::stoi(status.str(2))});
            }
        }
    }
    return rows;
}

int documented_status(const std::vector<Row>& rows, const std::string& sqlstate) {
    for (const Row& row : rows) {
        const bool listed = std::regex_search(row.sqlstates, std::regex("\\b" + sqlstate + "\\b"));
        const bool in_class = row.sqlstates.starts_with("class") &&
                              std::regex_search(row.sqlstates, std::regex("\\b" + sqlstate.substr(0, 2) + "\\b"));
        if (listed || in_class) {
            return row.status;
        }
    }
    return rows.back().status;
}

/// The errors of the server's own list, and ours.
std::vector<std::string> every_sqlstate() {
    const char* const pg_config = std::getenv("PG_CONFIG");
    const std::string command = std::string(pg_config == nullptr ? "pg_config" : pg_config) + " --sharedir";
    const std::unique_ptr<FILE, decltype(&pclose)> pipe(popen(command.c_str(), "r"), pclose);
    char folder[1000] = "";
    EXPECT_NE(fgets(folder, sizeof folder, pipe.get()), nullptr);
    std::ifstream list(std::string(folder, strcspn(folder, "\n")) + "/errcodes.txt");
    std::vector<std::string> sqlstates{"IK001", "IK002", "IK003", "IK004", "IK005", "IK006", "IK007"};
    const std::regex error("([0-9A-Z]{5}) +E .*");
    for (std::string line; std::getline(list, line);) {
        std::smatch found;
        if (std::regex_match(line, found, error)) {
            sqlstates.push_back(found.str(1));
        }
    }
    return sqlstates;
}

}  // namespace

TEST_F(Sqlstates, OfAHandlerAreAnsweredAsDocumented) {
    const std::vector<Row> rows = documented();
    ASSERT_GE(rows.size(), 4U);
    EXPECT_EQ(rows.back().sqlstates, "every other");
    const std::vector<std::string> sqlstates = every_sqlstate();
    ASSERT_GT(sqlstates.size(), 200U);
    for (const std::string& sqlstate : sqlstates) {
        const Response response = send(request(new_key()), [&](const Request&, Context& context) {
            context.transaction().execute("INSERT INTO effects VALUES ('before the error')");
            context.transaction().execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '" + sqlstate +
                                          "', MESSAGE = 'a test'; END $$");
            return Response::json(201, "{}");
        });
        EXPECT_EQ(response.status, documented_status(rows, sqlstate)) << sqlstate;
        EXPECT_EQ(header(response, "Content-Type"), "application/problem+json");
        EXPECT_EQ(response.body.find(sqlstate), std::string::npos) << "the client is not told";
        EXPECT_EQ(header(response, "Retry-After") != "", response.status == 503 || response.status == 409) << sqlstate;
    }
    EXPECT_EQ(effects(), 0);
    EXPECT_EQ(keys(), 0);
}
