// The scripts.
// Called by extension_test.cpp.
#include "extension_scripts.hpp"

#include <utility>

namespace {

const std::string body = R"({"id": 7})";
const std::string by_lock = "SET LOCAL idempotency.claim = lock";
const std::string insert_effect = "INSERT INTO effects VALUES ('<key>')";
const std::string complete = "SELECT idempotency_complete('<principal>', '<key>', 201, '" + body + "')";
const std::vector<std::string> keyed_write{"BEGIN", insert_effect, "SELECT outcome FROM <begin>", complete, "COMMIT"};

const std::string one_effect_and_replay =
    "(SELECT count(*) FROM effects WHERE note = '<key>') = 1 AND (SELECT outcome || response_status || response_body FROM <begin>) = 'replay201" +
    body + "'";
const std::string no_effect = "NOT EXISTS (SELECT FROM effects WHERE note = '<key>')";
const std::string key_is_free = "NOT EXISTS (SELECT FROM idempotency_keys WHERE key = '<key>')";
const std::string neither = no_effect + " AND " + key_is_free;
const std::string nothing_expired = "NOT EXISTS (SELECT FROM idempotency_keys WHERE expires_at < now())";

const std::string save_final = "idempotency_save_final('<principal>', '<key>', 'a', sha256('x'), 404, '{\"no\": 1}'";
const std::string long_document = "'[' || repeat('{\"z\": 1.50, \"a\": \"x\"},', 300) || '0]'";

std::vector<std::string> with_setting(const std::string& setting, std::vector<std::string> block) {
    block.insert(block.begin() + 1, setting);
    return block;
}

/// Rows of expired keys: so many, a minute apart, the newest a minute old.
std::string expired_keys(int count) {
    return "INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at) SELECT '<principal>',"
           " gen_random_uuid(), 'a', sha256('x'), now() - n * interval '1 min' FROM generate_series(1, " +
           std::to_string(count) + ") AS n";
}

void add_requests(std::vector<Script>& scripts) {
    scripts.push_back({.name = "started",
                       .statements = keyed_write,
                       .brings = "started|" + body,
                       .done = one_effect_and_replay,
                       .undone = neither});
    scripts.push_back({.name = "started_by_lock",
                       .statements = with_setting(by_lock, keyed_write),
                       .brings = "started|" + body,
                       .done = one_effect_and_replay,
                       .undone = neither});
    scripts.push_back({.name = "expired",
                       .before = {"SELECT " + save_final + ", NULL, '1 s', now() - interval '1 hour')"},
                       .statements = keyed_write,
                       .brings = "started|" + body,
                       .done = one_effect_and_replay,
                       .undone = no_effect});
    scripts.push_back({.name = "replay",
                       .before = keyed_write,
                       .statements = {"SELECT outcome, response_body FROM <begin>"},
                       .brings = "replay|" + body,
                       .done = one_effect_and_replay,
                       .undone = one_effect_and_replay});
    scripts.push_back({.name = "replay_by_lock",
                       .before = keyed_write,
                       .statements = {"BEGIN", by_lock, "SELECT outcome, response_body FROM <begin>", "COMMIT"},
                       .brings = "replay|" + body,
                       .done = one_effect_and_replay,
                       .undone = one_effect_and_replay});
    scripts.push_back(
        {.name = "reuse",
         .before = keyed_write,
         .statements = {"SELECT outcome FROM idempotency_begin('<principal>', '<key>', 'a', sha256('y'))"},
         .brings = "reuse",
         .done = one_effect_and_replay,
         .undone = one_effect_and_replay});
    scripts.push_back({.name = "in_progress",
                       .statements = {"SET idempotency.wait_timeout = 1", "SELECT outcome FROM <begin>"},
                       .brings = "in_progress",
                       .held_by_another = true});
    scripts.push_back({.name = "begin_request",
                       .statements = {"BEGIN", insert_effect,
                                      "SELECT outcome FROM idempotency_begin_request('<principal>', '\"<key>\"', 'a',"
                                      " 'POST', '/orders', convert_to(" +
                                          long_document + ", 'UTF8'), '1 day')",
                                      complete, "COMMIT"},
                       .brings = "started|" + body,
                       .done = "NOT (" + neither + ")",
                       .undone = neither});
    scripts.push_back(
        {.name = "savepoints_and_many_keys",
         .statements = {"BEGIN", insert_effect, "SAVEPOINT s", "SELECT outcome FROM <begin>", "ROLLBACK TO s",
                        "DO $$ DECLARE k uuid; BEGIN FOR i IN 1..5 LOOP k := gen_random_uuid(); PERFORM"
                        " idempotency_begin('<principal>', k, 'a', sha256('x')); PERFORM"
                        " idempotency_complete('<principal>', k, 200); END LOOP; END $$",
                        "SELECT outcome FROM <begin>", complete, "COMMIT"},
         .brings = "started|started|" + body,
         .done = one_effect_and_replay,
         .undone = neither});
    scripts.push_back({.name = "large_body",
                       .statements = {"BEGIN", insert_effect, "SELECT outcome FROM <begin>",
                                      "SELECT length(idempotency_complete('<principal>', '<key>', 201, to_jsonb((SELECT"
                                      " string_agg(md5(n::text), '') FROM generate_series(1, 2000) AS n)))::text)",
                                      "COMMIT"},
                       .brings = "started|64002",
                       .done = "(SELECT length(response_body::text) = 64002 FROM <begin>)",
                       .undone = neither});
    scripts.push_back({.name = "save_final",
                       .statements = {"SELECT " + save_final + ")"},
                       .brings = R"({"no": 1})",
                       .done = "(SELECT outcome || response_status = 'replay404' FROM <begin>)",
                       .undone = key_is_free});
}

void add_functions(std::vector<Script>& scripts) {
    scripts.push_back({.name = "fingerprint",
                       .statements = {"SELECT length(idempotency_fingerprint('post', '/orders', convert_to(" +
                                      long_document + ", 'UTF8')))"},
                       .brings = "32"});
    scripts.push_back({.name = "canonical_json",
                       .statements = {"SELECT length(idempotency_canonical_json(" + long_document + "))"},
                       .brings = "5403"});
    scripts.push_back(
        {.name = "stats", .statements = {"SELECT estimated, completed FROM idempotency_stats()"}, .brings = "f|0"});
    scripts.push_back({.name = "stats_of_a_large_table",
                       .setup = {"INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)"
                                 " SELECT '<principal>', gen_random_uuid(), repeat('a', 1000), sha256('x'), now() +"
                                 " interval '1 hour' FROM generate_series(1, 9000)",
                                 "ANALYZE idempotency_keys"},
                       .statements = {"SELECT estimated, in_progress FROM idempotency_stats()"},
                       .brings = "t|9000"});
}

void add_maintenance(std::vector<Script>& scripts) {
    scripts.push_back({.name = "cleanup",
                       .before = {expired_keys(3)},
                       .statements = {"CALL idempotency_cleanup(2)"},
                       .brings = "",
                       .done = nothing_expired});
    // One partition to drop, one to make, and in the default partition a key to move into that one and a key to delete.
    const auto first_key = [](const std::string& time) {
        return "rpad(lpad(to_hex((extract(epoch FROM " + time + ") * 1000)::bigint), 12, '0'), 32, '0')::uuid";
    };
    const std::string an_hour_ago = first_key("now() - interval '1 hour'");
    const std::string end_of_the_last = first_key("now() + interval '11 hours'");
    const std::string behind_the_last = first_key("now() + interval '11 hours 1 second'");
    scripts.push_back(
        {.name = "maintain_partitions",
         .before =
             {"DO $$ DECLARE p regclass; BEGIN FOR p IN SELECT inhrelid FROM pg_inherits WHERE inhparent ="
              " 'idempotency_keys'::regclass LOOP IF p <> 'idempotency_keys_default'::regclass THEN EXECUTE"
              " 'DROP TABLE ' || p; END IF; END LOOP; EXECUTE format('CREATE TABLE idempotency_keys_old PARTITION"
              " OF idempotency_keys FOR VALUES FROM (MINVALUE) TO (%L)', " +
                  an_hour_ago +
                  "); EXECUTE format("
                  "'CREATE TABLE idempotency_keys_last PARTITION OF idempotency_keys FOR VALUES FROM (%L) TO (%L)', " +
                  an_hour_ago + ", " + end_of_the_last + "); END $$",
              "DELETE FROM idempotency_keys_default",
              "INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at) VALUES"
              " ('<principal>', '00000000-0000-7000-8000-000000000001', 'a', sha256('x'), now() - interval '1 h'),"
              " ('<principal>', " +
                  behind_the_last +
                  ", 'a', sha256('x'), now() + interval '1 hour'),"
                  " ('<principal>', 'ffffffff-0000-7000-8000-000000000001', 'a', sha256('x'), now() - interval '1 h')"},
         .statements = {"CALL idempotency_maintain_partitions()"},
         .brings = "",
         .done = "(SELECT count(*) = 1 AND min(expires_at) > now() FROM idempotency_keys) AND NOT EXISTS (SELECT FROM"
                 " idempotency_keys_default) AND to_regclass('idempotency_keys_old') IS NULL",
         .undone = "(SELECT count(*) = 1 FROM idempotency_keys WHERE expires_at > now())",
         .partitioned = true});
    const std::string scheduled =
        "(SELECT count(*) = 2 FROM cron.job WHERE active AND jobname LIKE 'idempotency_cleanup%')";
    const std::string not_scheduled = "NOT EXISTS (SELECT FROM cron.job)";
    scripts.push_back({.name = "schedule",
                       .before = {"DELETE FROM cron.job"},
                       .statements = {"SELECT idempotency_schedule_cleanup() > 0"},
                       .brings = "t",
                       .done = scheduled,
                       .undone = not_scheduled,
                       .needs_pg_cron = true});
    scripts.push_back({.name = "unschedule",
                       .before = {"SELECT idempotency_schedule_cleanup()"},
                       .statements = {"SELECT idempotency_unschedule_cleanup()"},
                       .brings = "t",
                       .done = not_scheduled,
                       .undone = scheduled,
                       .needs_pg_cron = true});
}

}  // namespace

std::vector<Script> extension_scripts() {
    std::vector<Script> scripts;
    add_requests(scripts);
    add_functions(scripts);
    add_maintenance(scripts);
    return scripts;
}
