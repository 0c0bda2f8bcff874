// Checks of the arguments that describe a keyed request.
// Called by claim and answer.
#include "request.hpp"

#include <string>

#include "settings.hpp"

namespace idempotency {
namespace {

constexpr int fingerprint_size = 32;

/// A fingerprint: bytea of 32 bytes.
Datum request_sha256_argument(const pg::Arguments& arguments, int index) {
    const std::string_view bytes = arguments.bytes(index, "request_sha256");
    const std::size_t size = bytes.size();
    if (size != fingerprint_size) {
        pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "request_sha256 must be 32 bytes long",
                 "Its length in bytes is " + std::to_string(size) + ".",
                 "Use idempotency_fingerprint(method, path, body) or another SHA-256 value.");
    }
    return pg::bytea_datum(bytes);
}

}  // namespace

Datum action_argument(const pg::Arguments& arguments, int index) {
    if (arguments.bytes(index, "action").empty()) {
        pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "action must not be empty",
                 "The action names the operation and is kept with the key.", "Pass a name such as 'orders.create'.");
    }
    return arguments.datum(index);
}

NewKey key_arguments(const pg::Arguments& arguments) {
    NewKey key{};
    key.principal_id = arguments.uuid(0, "principal_id");
    key.key = arguments.uuid(1, "key");
    key.action = action_argument(arguments, 2);
    key.request_sha256 = request_sha256_argument(arguments, 3);
    return key;
}

void set_life(NewKey& key, const pg::Arguments& arguments, int ttl_index, int at_index) {
    key.created_at =
        arguments.is_null(at_index) ? GetCurrentTimestamp() : DatumGetTimestampTz(arguments.datum(at_index));
    if (TIMESTAMP_NOT_FINITE(key.created_at)) {
        pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "at must be finite", "The life of a key is counted from this time.",
                 "Leave the argument out to use the clock.");
    }
    if (arguments.is_null(ttl_index)) {
        key.expires_at = key.created_at + settings::key_ttl * USECS_PER_SEC;
        if (!IS_VALID_TIMESTAMP(key.expires_at)) {
            pg::fail(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE, "expires_at is out of range",
                     "at plus idempotency.key_ttl is later than a timestamp can be.", "Pass an earlier time.");
        }
        return;
    }
    key.expires_at = DatumGetTimestampTz(pg::call([&] {
        return DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(key.created_at),
                                   arguments.datum(ttl_index));
    }));
    if (key.expires_at <= key.created_at) {
        pg::fail(ERRCODE_INVALID_PARAMETER_VALUE, "ttl must be positive",
                 "A key with this ttl would have expired at once.",
                 "Pass an interval such as '24 hours', or leave the argument out to use idempotency.key_ttl.");
    }
}

}  // namespace idempotency
