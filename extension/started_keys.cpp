// The list of started keys, kept right across savepoints, and the check before commit.
// Called by claim and complete, and by the server's transaction callbacks.
#include "started_keys.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "pg/boundary.hpp"
#include "settings.hpp"
#include "sqlstates.hpp"

namespace idempotency::started_keys {
namespace {

struct StartedKey {
    Uuid principal_id;
    Uuid key;
    const NewKey* noted = nullptr;  ///< null when the row was written by begin
    SubTransactionId started_in = InvalidSubTransactionId;
    SubTransactionId completed_in = InvalidSubTransactionId;  ///< InvalidSubTransactionId: not completed
};

// In TopTransactionContext: the end of the transaction frees the list, the callbacks forget it.
StartedKey* keys = nullptr;
int count = 0;
int capacity = 0;

std::span<StartedKey> all() { return {keys, static_cast<std::size_t>(count)}; }

void forget() {
    keys = nullptr;
    count = 0;
    capacity = 0;
}

/// In TopTransactionContext as well.
const NewKey* copy_of(const NewKey& key) {
    return pg::call([&] {
        const MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
        auto* const copy = static_cast<NewKey*>(palloc(sizeof(NewKey)));
        *copy = key;
        copy->action = PointerGetDatum(PG_DETOAST_DATUM_COPY(key.action));
        copy->request_sha256 = PointerGetDatum(PG_DETOAST_DATUM_COPY(key.request_sha256));
        MemoryContextSwitchTo(caller);
        return copy;
    });
}

void check_all_completed() {
    // A key without a row would commit its effect and leave nothing for a repeat to find: no setting allows that.
    const auto is_left = [](const StartedKey& key) {
        return key.completed_in == InvalidSubTransactionId && (settings::require_complete || key.noted != nullptr);
    };
    const auto left = std::ranges::count_if(all(), is_left);
    if (left > 0) {
        pg::fail(sqlstates::key_left_in_progress, "key left in progress at commit",
                 "Keys that this transaction started and did not complete: " + std::to_string(left) +
                     ". No repeat would get an answer.",
                 "Call idempotency_complete before COMMIT, or ROLLBACK.");
    }
}

void on_transaction_event(XactEvent event, void*) {
    switch (event) {
        case XACT_EVENT_PRE_COMMIT:
        case XACT_EVENT_PRE_PREPARE:
            pg::guarded(check_all_completed);
            break;
        case XACT_EVENT_COMMIT:
        case XACT_EVENT_PREPARE:
        case XACT_EVENT_ABORT:
            forget();
            break;
        default:
            break;
    }
}

void on_subtransaction_event(SubXactEvent event, SubTransactionId ended, SubTransactionId parent, void*) {
    if (event == SUBXACT_EVENT_COMMIT_SUB) {
        for (StartedKey& key : all()) {
            key.started_in = key.started_in == ended ? parent : key.started_in;
            key.completed_in = key.completed_in == ended ? parent : key.completed_in;
        }
    } else if (event == SUBXACT_EVENT_ABORT_SUB) {
        const auto listed = all();
        const auto gone = std::remove_if(listed.begin(), listed.end(),
                                         [&](const StartedKey& key) { return key.started_in == ended; });
        count -= static_cast<int>(listed.end() - gone);
        for (StartedKey& key : all()) {
            key.completed_in = key.completed_in == ended ? InvalidSubTransactionId : key.completed_in;
        }
    }
}

}  // namespace

void watch_transactions() {
    RegisterXactCallback(on_transaction_event, nullptr);
    RegisterSubXactCallback(on_subtransaction_event, nullptr);
}

const NewKey* noted(const Uuid& principal_id, const Uuid& key) {
    for (const StartedKey& started : all()) {
        if (started.noted != nullptr && started.key == key && started.principal_id == principal_id &&
            started.completed_in == InvalidSubTransactionId) {
            return started.noted;
        }
    }
    return nullptr;
}

void add(const NewKey& key, bool noted) {
    if (count == capacity) {
        const int wanted = std::max(4, 2 * capacity);
        keys = pg::call([&] {
            const Size size = sizeof(StartedKey) * static_cast<Size>(wanted);
            return static_cast<StartedKey*>(keys == nullptr ? MemoryContextAlloc(TopTransactionContext, size)
                                                            : repalloc(keys, size));
        });
        capacity = wanted;
    }
    keys[count] = {key.principal_id, key.key, noted ? copy_of(key) : nullptr, GetCurrentSubTransactionId(),
                   InvalidSubTransactionId};
    ++count;
}

void mark_completed(const Uuid& principal_id, const Uuid& key) {
    // From the end: what is completed was mostly started last.
    for (int i = count - 1; i >= 0; --i) {
        if (keys[i].key == key && keys[i].principal_id == principal_id &&
            keys[i].completed_in == InvalidSubTransactionId) {
            keys[i].completed_in = GetCurrentSubTransactionId();
            return;
        }
    }
}

}  // namespace idempotency::started_keys
