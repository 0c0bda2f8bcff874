// The lock on one key, on the server's lock manager.
// Called by claim, complete and save_final.
#include "key_lock.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "pg/compat.hpp"
#include "settings.hpp"

namespace idempotency {
namespace {

/// The lock class, shown as objsubid in pg_locks: "IK" in ASCII. The server uses 1 and 2 for its own functions.
constexpr std::uint16_t lock_class = 0x494B;

/// The classes in which a waiting session shows its key to idempotency_waiting, since the lock itself only holds a
/// hash: "IH" for the high half of the key, "IL" for the low half. Shared, so that nobody ever waits for them.
constexpr std::uint16_t high_half_class = 0x4948;
constexpr std::uint16_t low_half_class = 0x494C;

LOCKTAG tag_of(const std::uint8_t* big_endian_bytes, std::uint16_t tag_class) {
    std::uint64_t number = 0;
    for (int i = 0; i < 8; ++i) {
        number = number << 8 | big_endian_bytes[i];
    }
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, static_cast<uint32>(number >> 32), static_cast<uint32>(number), tag_class);
    return tag;
}

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

KeyLock::KeyLock(const Uuid& principal_id, const Uuid& key) : key_(key) {
    std::array<std::uint8_t, 32> name{};
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
    const std::array shown{tag_of(key_.bytes.data(), high_half_class), tag_of(key_.bytes.data() + 8, low_half_class)};
    const auto error = pg::attempt([&] {
        const int nest_level = NewGUCNestLevel();
        if (timeout_text != nullptr) {
            (void)set_config_option("lock_timeout", timeout_text, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                                    false);
        }
        for (const LOCKTAG& tag : shown) {
            (void)LockAcquire(&tag, ShareLock, false, false);
        }
        (void)LockAcquire(&tag_, ExclusiveLock, false, false);
        for (const LOCKTAG& tag : shown) {
            (void)LockRelease(&tag, ShareLock, false);
        }
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
