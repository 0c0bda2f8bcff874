// complete and save_final: store the final answer of a request.
// Called by the entry points idempotency_complete and idempotency_save_final.
#include <string>

#include "core/final_status.hpp"
#include "key_lock.hpp"
#include "request.hpp"
#include "sqlstates.hpp"
#include "started_keys.hpp"
#include "store.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

/// The arguments response_status, response_body and resource_id, three in a row.
StoredAnswer answer_arguments(const pg::Arguments& arguments, int first_index) {
    StoredAnswer answer;
    const int status = arguments.integer(first_index, "response_status");
    answer.status = static_cast<std::int16_t>(status);
    if (!arguments.is_null(first_index + 1)) {
        answer.body = arguments.datum(first_index + 1);
    }
    answer.resource_id = arguments.optional_uuid(first_index + 2);
    return answer;
}

void check_status(int status, bool final, const char* accepted, const char* hint) {
    if (!final) {
        pg::fail(sqlstates::status_not_final, "status " + std::to_string(status) + " is not final here", accepted,
                 hint);
    }
}

Datum body_or_null(FunctionCallInfo fcinfo, const std::optional<Datum>& body) {
    fcinfo->isnull = !body;
    return body.value_or(Datum{});
}

/// Writes the row of a key that begin only noted.
StoredAnswer insert_noted(const Store& store, const NewKey& key, const StoredAnswer& answer) {
    if (store.insert_or_find(key, &answer)) {
        pg::fail(ERRCODE_T_R_SERIALIZATION_FAILURE, "the key was stored by another writer meanwhile",
                 "A writer that does not take the key's lock, or does not see this transaction's, was faster.",
                 "Repeat the transaction: idempotency_begin finds what is stored.");
    }
    return answer;
}

}  // namespace

Datum complete(FunctionCallInfo fcinfo) {
    const pg::Arguments arguments(fcinfo);
    const Uuid principal_id = arguments.uuid(0, "principal_id");
    const Uuid key = arguments.uuid(1, "key");
    const StoredAnswer answer = answer_arguments(arguments, 2);
    const int status = arguments.integer(2, "response_status");
    check_status(status, is_success(status), "idempotency_complete stores the statuses 200 to 299.",
                 "For a final error, roll back and call idempotency_save_final; other statuses are not stored.");
    std::optional<StoredAnswer> stored;
    if (KeyLock(principal_id, key).held()) {
        const pg::Spi spi;
        const Store store(fcinfo->flinfo->fn_oid);
        const NewKey* const noted = started_keys::noted(principal_id, key);
        stored = noted != nullptr ? insert_noted(store, *noted, answer) : store.complete(principal_id, key, answer);
    }
    if (!stored) {
        pg::fail(sqlstates::key_not_in_progress, "key is not in progress in this transaction",
                 "Only the transaction in which idempotency_begin said started can complete a key, and only once.",
                 "Call idempotency_begin first, and idempotency_complete only when its outcome is started.");
    }
    started_keys::mark_completed(principal_id, key);
    return body_or_null(fcinfo, stored->body);
}

Datum save_final(FunctionCallInfo fcinfo) {
    const pg::Arguments arguments(fcinfo);
    NewKey key = key_arguments(arguments);
    const StoredAnswer answer = answer_arguments(arguments, 4);
    const int status = arguments.integer(4, "response_status");
    check_status(status, is_final_error(status),
                 "idempotency_save_final stores the statuses 400, 403, 404, 409, 410, 412, 413, 415 and 422.",
                 "For a success call idempotency_complete; other statuses are not stored.");
    set_life(key, arguments, 7, 8);

    const KeyLock lock(key.principal_id, key.key);
    const KeyLock::Acquired acquired = lock.try_acquire();
    if (acquired !=
        KeyLock::Acquired::no) {  // else a running duplicate owns the key, and its answer will be the stored one
        const pg::Spi spi;
        const bool noted = started_keys::noted(key.principal_id, key.key) != nullptr;
        const auto row = noted ? std::nullopt : Store(fcinfo->flinfo->fn_oid).insert_or_find(key, &answer);
        if (noted || (row && !row->completed && acquired == KeyLock::Acquired::held_before)) {
            pg::fail(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "key is in progress in this transaction",
                "A final error is stored after the effect was rolled back.",
                "ROLLBACK, or ROLLBACK TO a savepoint set before idempotency_begin, then call idempotency_save_final.");
        }
        if (row) {
            lock.release();  // ours stays until the commit, so that a repeat waits for it
        }
    }
    return body_or_null(fcinfo, answer.body);
}

}  // namespace idempotency
