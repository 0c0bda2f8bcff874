// The lock on one key, on the server's lock manager.
// Called by claim, complete and save_final.
#include "key_lock.hpp"

#include <array>
#include <algorithm>
#include <cstdint>

#include "pg/compat.hpp"
#include "settings.hpp"

namespace idempotency {
namespace {

/// The lock class, shown as objsubid in pg_locks: "IK" in ASCII. The server uses 1 and 2 for its own functions.
constexpr std::uint16_t lock_class = 0x494B;

/// While it lives, locks belong to the (sub)transaction and not to the running statement. A lock that was waited for in a subtransaction ends
/// there too, so that both ways of taking it are released the same way.
class TransactionOwnsLocks {
public:
    TransactionOwnsLocks() noexcept : owner_(CurrentResourceOwner) {
        CurrentResourceOwner = CurTransactionResourceOwner;
    }
    ~TransactionOwnsLocks() { CurrentResourceOwner = owner_; }
    TransactionOwnsLocks(const TransactionOwnsLocks&) = delete;
    TransactionOwnsLocks& operator=(const TransactionOwnsLocks&) = delete;

private:
    ResourceOwner owner_;
};

}  // namespace

KeyLock::KeyLock(const Uuid& principal_id, const Uuid& key) {
    std::array<std::uint8_t, 32> name;
    std::ranges::copy(principal_id.bytes, name.begin());
    std::ranges::copy(key.bytes, name.begin() + 16);
    const std::uint64_t hash = hash_bytes_extended(name.data(), static_cast<int>(name.size()), 0);
    SET_LOCKTAG_ADVISORY(tag_, MyDatabaseId, static_cast<uint32>(hash >> 32), static_cast<uint32>(hash), lock_class);
}

KeyLock::Acquired KeyLock::try_acquire() const {
    const TransactionOwnsLocks scope;
    switch (pg::call([&] { return LockAcquire(&tag_, ExclusiveLock, false, true); })) {
        case LOCKACQUIRE_NOT_AVAIL:
            return Acquired::no;
        case LOCKACQUIRE_ALREADY_HELD:
        case LOCKACQUIRE_ALREADY_CLEAR:
            return Acquired::held_before;
        default:
            return Acquired::yes;
    }
}

bool KeyLock::wait() const {
    if (settings::wait_timeout == 0) {
        return false;
    }
    const std::string timeout = std::to_string(settings::wait_timeout);
    const char* const timeout_text = settings::wait_timeout > 0 ? timeout.c_str() : nullptr;
    const auto error = pg::attempt([&] {
        const int nest_level = NewGUCNestLevel();
        if (timeout_text != nullptr) {
            (void)set_config_option("lock_timeout", timeout_text, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                                    false);
        }
        (void)LockAcquire(&tag_, ExclusiveLock, false, false);
        AtEOXact_GUC(true, nest_level);
    });
    if (!error) {
        return true;
    }
    if (error->sqlstate() == ERRCODE_LOCK_NOT_AVAILABLE) {
        return false;
    }
    throw *error;
}

void KeyLock::release() const {
    const TransactionOwnsLocks scope;
    pg::call([&] { (void)LockRelease(&tag_, ExclusiveLock, false); });
}

bool KeyLock::held() const {
    return pg::call([&] { return pg::lock_held_by_me(tag_, ExclusiveLock); });
}

}  // namespace idempotency
