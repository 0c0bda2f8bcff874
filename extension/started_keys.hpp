// The keys that this transaction started, and the commit guard: a transaction that leaves one in progress does not commit.
// Told by claim and complete; the server tells it of savepoints, COMMIT and ROLLBACK.
#pragma once

#include "store.hpp"

namespace idempotency::started_keys {

/// Begins to listen to the server's transaction events. Called by _PG_init.
void watch_transactions();

/// begin said started for this key, in the current (sub)transaction.
/// @param noted whether its row is yet to be written: then the key is copied for that
void add(const NewKey& key, bool noted);

/// The key whose row complete is to write, when begin noted one in this transaction and it was not completed; else null.
[[nodiscard]] const NewKey* noted(const Uuid& principal_id, const Uuid& key);

/// The key was completed in the current (sub)transaction; a rollback of that one takes it back.
void mark_completed(const Uuid& principal_id, const Uuid& key);

}  // namespace idempotency::started_keys
