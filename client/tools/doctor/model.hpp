// What the table idempotency_keys must be: the one description of it beside the migrations.
// Read by the doctor's check of the table, and by the test that compares the migrations with it.
#pragma once

#include <array>
#include <string_view>

namespace doctor::model {

struct Column {
    std::string_view name;
    std::string_view type;  ///< as format_type writes it
    bool not_null;
    std::string_view default_value;  ///< as pg_get_expr writes it; empty: none
};

inline constexpr std::array columns{
    Column{"principal_id", "uuid", true, ""},
    Column{"key", "uuid", true, ""},
    Column{"action", "text", true, ""},
    Column{"request_sha256", "bytea", true, ""},
    Column{"state", "text", true, "'in_progress'::text"},
    Column{"response_status", "smallint", false, ""},
    Column{"response_body", "jsonb", false, ""},
    Column{"resource_id", "uuid", false, ""},
    Column{"created_at", "timestamp with time zone", true, "now()"},
    Column{"expires_at", "timestamp with time zone", true, ""},
};

struct Constraint {
    std::string_view name;
    std::string_view
        definition;  ///< as pg_get_constraintdef writes it, without the schema of the table that it references
};

inline constexpr std::array constraints{
    Constraint{"idempotency_keys_state_check", "CHECK ((state = ANY (ARRAY['in_progress'::text, 'completed'::text])))"},
    Constraint{"idempotency_keys_principal_id_fkey",
               "FOREIGN KEY (principal_id) REFERENCES principals(id) ON DELETE CASCADE"},
    Constraint{"idempotency_keys_pkey", "PRIMARY KEY (principal_id, key)"},
};

/// Beside the primary key's, as the end of what pg_get_indexdef writes.
inline constexpr std::string_view index = "USING btree (expires_at)";

}  // namespace doctor::model
