// maintain_partitions: makes partitions of the key table ahead of time, and drops those whose keys have all expired.
// Called by the entry point idempotency_maintain_partitions, by hand or from pg_cron.
#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "maintenance.hpp"
#include "pg/arguments.hpp"
#include "settings.hpp"
#include "subjects.hpp"

namespace idempotency {
namespace {

using Milliseconds = std::int64_t;  ///< since 1970, as in a UUIDv7

/// How long a step waits for the table. The requests that come meanwhile wait behind it.
constexpr const char* table_wait = "50ms";

/// So many partitions are there before their time comes.
constexpr int intervals_ahead = 2;

struct Partition {
    std::string name;    ///< quoted, with its schema
    Milliseconds until;  ///< keys from this time on are not in it
};

/// The partitions of the table.
struct Partitions {
    std::vector<Partition> of_time;
    bool has_default = false;
};

struct Work {
    int made = 0;
    int dropped = 0;
    bool left_some = false;
};

std::string table_of(Oid function) { return quoted_schema(function) + ".idempotency_keys"; }

Milliseconds milliseconds_of(TimestampTz time) {
    constexpr std::int64_t microseconds_before_2000 = (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
    return (time + microseconds_before_2000) / 1000;
}

/// The least key of this time, as a literal: a UUIDv7 begins with 48 bits of time.
std::string first_key(Milliseconds time) {
    Uuid key;
    for (int byte = 0; byte < 6; ++byte) {
        key.bytes[byte] = static_cast<std::uint8_t>(time >> (8 * (5 - byte)));
    }
    return pg::quoted_literal(key.to_string());
}

/// The end of a partition in the text of its bounds: FOR VALUES FROM (...) TO ('uuid').
std::optional<Milliseconds> end_of(const std::string& bounds) {
    constexpr std::string_view before_end = "TO ('";
    constexpr std::size_t uuid_size = 36;
    const std::size_t found = bounds.rfind(before_end);
    if (found == std::string::npos) {
        return std::nullopt;
    }
    const auto key = Uuid::parse(bounds.substr(found + before_end.size(), uuid_size));
    return key ? std::optional(key->unix_milliseconds()) : std::nullopt;
}

Partitions partitions_of(const std::string& table) {
    const Datum name = pg::text_datum(table);
    const std::uint64_t rows = pg::call([&] {
        Datum values[] = {name};
        Oid types[] = {TEXTOID};
        pg::require_success(SPI_execute_with_args(
            "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), pg_catalog.pg_get_expr(c.relpartbound, c.oid)"
            " FROM pg_catalog.pg_inherits AS i"
            " JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid"
            " JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
            " WHERE i.inhparent OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)"
            " ORDER BY 1",
            1, types, values, nullptr, false, 0));
        return SPI_processed;
    });
    Partitions partitions;
    for (std::uint64_t row = 0; row < rows; ++row) {
        const auto column = [row](int number) {
            return std::string(
                pg::call([&] { return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, number); }));
        };
        const std::string bounds = column(2);
        if (bounds == "DEFAULT") {
            partitions.has_default = true;
        } else if (const auto until = end_of(bounds)) {
            partitions.of_time.push_back({column(1), *until});
        }
    }
    return partitions;
}

void require_owner(const std::string& table) {
    const auto owner = pg::first_text(
        "SELECT pg_catalog.pg_get_userbyid(relowner)::pg_catalog.text FROM pg_catalog.pg_class"
        " WHERE oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)"
        " AND NOT pg_catalog.pg_has_role(relowner, 'USAGE')",
        {table});
    if (owner) {
        pg::fail(ERRCODE_INSUFFICIENT_PRIVILEGE, "must be owner of table idempotency_keys",
                 "Only its owner, the role " + pg::quoted_literal(*owner) + ", may make and drop its partitions.",
                 "Run it as that role. CALL idempotency_cleanup() needs no owner, and deletes row by row.");
    }
}

/// Looks at the partition itself: no policy on the table hides a row from it.
bool has_live_keys(const std::string& partition, TimestampTz now) {
    const std::string newest = "SELECT true FROM (SELECT expires_at FROM " + partition +
                               " ORDER BY expires_at DESC LIMIT 1) AS newest"
                               " WHERE expires_at OPERATOR(pg_catalog.>) $1";
    return pg::first_value(newest.c_str(), {pg::Parameter::time(now)}).has_value();
}

/// @return false when other transactions use the table
bool drop_when_expired(const std::string& table, const std::string& partition, TimestampTz now, Work& work) {
    const bool is_there = pg::first_value("SELECT pg_catalog.to_regclass($1)", {partition}).has_value();
    if (!is_there || has_live_keys(partition, now)) {
        return true;
    }
    bool dropped = false;
    const bool undisturbed = maintenance::give_way(table_wait, [&] {
        // The whole table first, as everyone locks it; in the other order this could be a deadlock. From then on no key is on its way
        // into the partition, and what was committed just before is seen.
        pg::execute("LOCK TABLE ONLY " + table + " IN ACCESS EXCLUSIVE MODE");
        if (!has_live_keys(partition, now)) {
            pg::execute("DROP TABLE " + partition);
            dropped = true;
        }
    });
    work.dropped += undisturbed && dropped ? 1 : 0;
    return undisturbed;
}

std::string name_from(Milliseconds time) {
    const std::time_t seconds = time / 1000;
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    std::string name(64, '\0');
    name.resize(std::strftime(name.data(), name.size(), "idempotency_keys_%Y%m%d%H%M%S", &utc));
    return name;
}

/// @return false when other transactions use what it needs
bool make(Oid function, const std::string& table, Milliseconds from, Milliseconds until, bool has_default) {
    const std::string partition = quoted_schema(function) + "." + name_from(from);
    const std::string default_partition = table + "_default";
    const std::string range =
        " WHERE key OPERATOR(pg_catalog.>=) " + first_key(from) + " AND key OPERATOR(pg_catalog.<) " + first_key(until);
    return maintenance::give_way(table_wait, [&] {
        // Made apart and attached: then the table is not locked against requests, as CREATE TABLE ... PARTITION OF would.
        pg::execute("CREATE TABLE " + partition + " (LIKE " + table + " INCLUDING DEFAULTS INCLUDING CONSTRAINTS)");
        const auto owner = pg::first_text(
            "SELECT pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(relowner)) FROM pg_catalog.pg_class"
            " WHERE oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)",
            {table});
        pg::execute("ALTER TABLE " + partition + " OWNER TO " + owner.value_or("CURRENT_USER"));
        if (has_default &&
            pg::first_value(("SELECT true FROM " + default_partition + range + " LIMIT 1").c_str(), {})) {
            pg::execute("LOCK TABLE " + default_partition + " IN ACCESS EXCLUSIVE MODE");
            pg::execute("WITH moved AS (DELETE FROM " + default_partition + range + " RETURNING *) INSERT INTO " +
                        partition + " SELECT * FROM moved");
        }
        pg::execute("ALTER TABLE " + table + " ATTACH PARTITION " + partition + " FOR VALUES FROM (" + first_key(from) +
                    ") TO (" + first_key(until) + ")");
    });
}

/// Where the next partition begins: after the last one, or now when that is long ago.
Milliseconds next_start(const Partitions& partitions, TimestampTz now, Milliseconds interval) {
    Milliseconds start = milliseconds_of(now) / interval * interval;
    for (const Partition& partition : partitions.of_time) {
        start = std::max(start, partition.until);
    }
    return start;
}

/// @return whether there may be more to make
bool make_next(Oid function, const std::string& table, TimestampTz now, Work& work) {
    const Milliseconds interval = settings::partition_interval * Milliseconds{1000};
    const Partitions partitions = partitions_of(table);
    const Milliseconds start = next_start(partitions, now, interval);
    if (start >= milliseconds_of(now) + intervals_ahead * interval) {
        return false;
    }
    const bool made = make(function, table, start, (start / interval + 1) * interval, partitions.has_default);
    work.made += made ? 1 : 0;
    work.left_some |= !made;
    return made;
}

/// A step of the procedure: alone, and committed. Each of its statements sees what is committed by then, whatever the session's isolation level:
/// with the snapshot of a first statement, a key that came while the step waited for the table would be dropped unseen.
template <typename Body>
auto step(Body body) {
    pg::check_for_interrupts();
    XactIsoLevel = XACT_READ_COMMITTED;
    maintenance::wait_for_turn();
    auto result = body();
    maintenance::commit();
    return result;
}

}  // namespace

bool is_partitioned(Oid function) {
    return pg::first_value(
               "SELECT true FROM pg_catalog.pg_class"
               " WHERE oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)"
               " AND relkind OPERATOR(pg_catalog.=) 'p'",
               {table_of(function)})
        .has_value();
}

Datum maintain_partitions(FunctionCallInfo fcinfo) {
    maintenance::require_own_transaction(fcinfo, "idempotency_maintain_partitions");
    const pg::Spi spi(SPI_OPT_NONATOMIC);
    const Oid function = fcinfo->flinfo->fn_oid;
    const std::string table = table_of(function);
    if (!is_partitioned(function)) {
        pg::fail(ERRCODE_WRONG_OBJECT_TYPE, "table idempotency_keys is not partitioned",
                 "CALL idempotency_cleanup() deletes the expired keys of a plain table.",
                 "Apply the migration partitioned/00003_partitioned_keys.sql to convert it.");
    }
    require_owner(table);
    maintenance::commit();  // the steps begin without a snapshot

    const TimestampTz now = GetCurrentTimestamp();
    Work work;
    while (step([&] { return make_next(function, table, now, work); })) {}
    const Partitions partitions = step([&] { return partitions_of(table); });
    for (const Partition& partition : partitions.of_time) {
        if (partition.until <= milliseconds_of(now)) {
            work.left_some |= !step([&] { return drop_when_expired(table, partition.name, now, work); });
        }
    }
    pg::call([&] {
        ereport(NOTICE, (errmsg("partitions of idempotency_keys made: %d, dropped: %d", work.made, work.dropped),
                         work.left_some ? errdetail("Others are in use: the next run tries again.") : 0));
    });
    if (partitions.has_default) {
        maintenance::delete_expired(function, now, settings::cleanup_batch_size, ExpiredIn::default_partition);
    }
    return Datum{};
}

}  // namespace idempotency
