// What the extension is asked for while something fails: every entry point, every outcome.
// Used by extension_test.cpp.
#pragma once

#include <ostream>
#include <string>
#include <vector>

/// Statements, and what must hold before and after. In all of them <key> stands for a new key, <principal> for an existing principal and <begin> for
/// a call of idempotency_begin with both.
struct Script {
    std::string name;
    std::vector<std::string> setup = {};   ///< once, in the new database
    std::vector<std::string> before = {};  ///< each time, while nothing fails
    std::vector<std::string> statements;   ///< what something fails in
    std::string brings;                    ///< the values of all of them, joined by |
    std::string done = "true";             ///< a condition that holds once they succeeded
    std::string undone = "true";           ///< ... and once they failed
    bool held_by_another = false;          ///< another session has begun with the key
    bool partitioned = false;              ///< the table is the partitioned one
    bool needs_pg_cron = false;            ///< in the database that pg_cron works in
};

inline std::ostream& operator<<(std::ostream& out, const Script& script) { return out << script.name; }

[[nodiscard]] std::vector<Script> extension_scripts();
