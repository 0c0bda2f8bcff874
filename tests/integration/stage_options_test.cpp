// The stage: options that are off unless asked for.
// Run by ctest against a real server.
#include "stage_fixture.hpp"

namespace {

class OptionsTest : public StageTest {
protected:
    /// The fixture's stage with other options.
    [[nodiscard]] idempotency::StageOptions changed() { return options(std::chrono::milliseconds(5000)); }

    Response send_to(const idempotency::Stage& other, const Request& made, const Handler& handler) {
        return other.handle(operation, actor, made, handler);
    }
};

}  // namespace

using KeyRequired = OptionsTest;
using Location = OptionsTest;
using AuthorizeReplay = OptionsTest;
using Deadline = OptionsTest;
using FingerprintKeys = OptionsTest;
using ExactNumbers = OptionsTest;
using PreparedStatements = OptionsTest;
using Schema = OptionsTest;

TEST_F(KeyRequired, MissingKeyIs400) {
    operation.key_required = true;
    const Response response = send(request(""), creating());
    EXPECT_EQ(response.status, 400);
    const json document = json::parse(response.body);
    EXPECT_EQ(document["errors"][0]["pointer"], "#header/Idempotency-Key");
    EXPECT_EQ(document["errors"][0]["code"], "required");
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(send(request(new_key()), creating()).status, 201);
}

TEST_F(Location, IsTheSameFirstAndReplayed) {
    operation.location = "/api/v1/orders/{resource_id}";
    const std::string key = new_key();
    const Response first = send(request(key), creating());
    EXPECT_EQ(header(first, "Location"), "/api/v1/orders/" + json::parse(first.body)["id"].get<std::string>());
    EXPECT_EQ(header(send(request(key), creating()), "Location"), header(first, "Location"));
}

TEST_F(AuthorizeReplay, MayRefuseIt) {
    auto with_hook = changed();
    bool revoked = false;
    with_hook.authorize_replay = [&](const idempotency::Actor& who, const Operation& what,
                                     const Request&) -> std::optional<idempotency::Problem> {
        EXPECT_EQ(who.principal_id, actor.principal_id);
        EXPECT_EQ(what.action, "orders.create");
        return revoked ? std::optional(idempotency::Problem{403, "revoked", "Forbidden", "No more.", {}, {}})
                       : std::nullopt;
    };
    const idempotency::Stage asking(pool, with_hook);
    const std::string key = new_key();
    const Response first = send_to(asking, request(key), creating());
    expect_same_answer(first, send_to(asking, request(key), creating()));
    revoked = true;
    const Response refused = send_to(asking, request(key), creating());
    EXPECT_EQ(refused.status, 403);
    EXPECT_FALSE(is_replay(refused));
    revoked = false;
    expect_same_answer(first, send_to(asking, request(key), creating()));
}

TEST_F(Deadline, EndsTheAttempts) {
    auto with_deadline = changed();
    with_deadline.deadline = std::chrono::milliseconds(50);
    with_deadline.unit_of_work.tx_retry_max = 1'000'000;
    const idempotency::Stage hurried(pool, with_deadline);
    const Response response = send_to(hurried, request(new_key()), [&](const Request&, Context& context) {
        ++runs;
        context.transaction().execute("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$");
        return Response::json(200, "{}");
    });
    EXPECT_EQ(response.status, 503);
    EXPECT_LT(runs, 100);
}

TEST_F(Deadline, EndsTheWaitForAConnection) {
    idempotency::Pool small(database.application_conninfo(), 1);
    auto with_deadline = changed();
    with_deadline.deadline = std::chrono::milliseconds(20);
    const idempotency::Stage hurried(small, with_deadline);
    const auto lent = small.acquire(std::chrono::steady_clock::time_point::max());
    const Response response = send_to(hurried, request(new_key()), creating());
    EXPECT_EQ(response.status, 503);
    EXPECT_NE(header(response, "Retry-After"), "");
    EXPECT_EQ(runs, 0);
}

TEST_F(FingerprintKeys, TheStoredValueIsNoPlainHash) {
    auto with_keys = changed();
    with_keys.fingerprint_keys = {"first key"};
    const idempotency::Stage keyed(pool, with_keys);
    const std::string key = new_key();
    const Response first = send_to(keyed, request(key), creating());
    EXPECT_EQ(database.value("SELECT octet_length(request_sha256) FROM idempotency_keys"), "32");
    EXPECT_EQ(database.value("SELECT count(*) FROM idempotency_keys WHERE request_sha256 ="
                             " idempotency_fingerprint('POST', '/api/v1/orders', '{\"sku\":\"A-1\"}')"),
              "0");
    expect_same_answer(first, send_to(keyed, request(key), creating()));
    EXPECT_EQ(code(send_to(keyed, request(key, "{}"), creating())), "idempotency_key_reuse");
}

TEST_F(FingerprintKeys, AnOlderKeyStillVerifies) {
    auto before = changed();
    before.fingerprint_keys = {"old"};
    auto after = changed();
    after.fingerprint_keys = {"new", "old"};
    const idempotency::Stage old_stage(pool, before);
    const idempotency::Stage new_stage(pool, after);
    for (const bool deferred : {false, true}) {
        operation.deferred = deferred;
        const std::string key = new_key();
        const Response first = send_to(old_stage, request(key), creating());
        expect_same_answer(first, send_to(new_stage, request(key), creating()));
        EXPECT_EQ(code(send_to(new_stage, request(key, "{}"), creating())), "idempotency_key_reuse");
        const std::string newer = new_key();
        send_to(new_stage, request(newer), creating());
        EXPECT_EQ(code(send_to(old_stage, request(newer), creating())), "idempotency_key_reuse");
    }
    EXPECT_EQ(effects(), 4);
}

TEST_F(ExactNumbers, AmountsThatOneDoubleHoldsAreTwoRequests) {
    const std::string key = new_key();
    send(request(key, R"({"amount":9007199254740993})"), creating());
    EXPECT_TRUE(is_replay(send(request(key, R"({"amount":9007199254740992})"), creating())));
    auto exact = changed();
    exact.exact_numbers = true;
    const idempotency::Stage exact_stage(pool, exact);
    const std::string other = new_key();
    send_to(exact_stage, request(other, R"({"amount":9007199254740993})"), creating());
    EXPECT_EQ(code(send_to(exact_stage, request(other, R"({"amount":9007199254740992})"), creating())),
              "idempotency_key_reuse");
    EXPECT_TRUE(is_replay(send_to(exact_stage, request(other, R"({"amount":9007199254740993})"), creating())));
}

TEST_F(PreparedStatements, CanBeTurnedOff) {
    auto unprepared = changed();
    unprepared.unit_of_work.prepared_statements = false;
    idempotency::Pool single(database.conninfo(), 1);
    const idempotency::Stage plain(single, unprepared);
    const std::string key = new_key();
    const Response first = send_to(plain, request(key), [&](const Request& made, Context& context) {
        EXPECT_EQ(context.transaction().execute("SELECT count(*) FROM pg_prepared_statements").get(0, 0), "0");
        return creating()(made, context);
    });
    expect_same_answer(first, send_to(plain, request(key), creating()));
}

namespace {

std::string count_prepared(idempotency::Context& context) {
    return std::string(context.transaction().execute("SELECT count(*) FROM pg_prepared_statements").get(0, 0).value());
}

}  // namespace

TEST_F(PreparedStatements, AreTheDefault) {
    idempotency::Pool single(database.conninfo(), 1);
    auto by_default = changed();
    by_default.unit_of_work = {};
    const idempotency::Stage prepared(single, by_default);
    std::string count;
    for (int i = 0; i < 3; ++i) {
        const Response response = send_to(prepared, request(new_key()), [&](const Request& made, Context& context) {
            count = count_prepared(context);
            return creating()(made, context);
        });
        EXPECT_EQ(response.status, 201);
    }
    EXPECT_EQ(count, "7");  // BEGIN, set_config, begin, the two of the handler, complete, COMMIT
}

TEST_F(PreparedStatements, AreLimitedInNumber) {
    idempotency::Pool single(database.conninfo(), 1);
    auto by_default = changed();
    by_default.unit_of_work = {};
    const idempotency::Stage prepared(single, by_default);
    send_to(prepared, request(new_key()), [&](const Request&, Context& context) {
        for (int i = 0; i < 300; ++i) {
            EXPECT_EQ(context.transaction().execute("SELECT " + std::to_string(i)).get(0, 0), std::to_string(i));
        }
        EXPECT_EQ(count_prepared(context), "256");
        return Response{204, {}, ""};
    });
}

TEST_F(PreparedStatements, ThatNoLongerFitAreMadeAnew) {
    idempotency::Pool single(database.conninfo(), 1);
    auto by_default = changed();
    by_default.unit_of_work = {};
    const idempotency::Stage prepared(single, by_default);
    const Handler reading = [&](const Request& made, Context& context) {
        context.transaction().execute("SELECT * FROM effects");
        return creating()(made, context);
    };
    EXPECT_EQ(send_to(prepared, request(new_key()), reading).status, 201);
    database.value("ALTER TABLE effects ADD COLUMN more integer");
    EXPECT_EQ(send_to(prepared, request(new_key()), reading).status, 201);
    EXPECT_THAT(observer.events(), ::testing::Contains("retried 0A000"));
    EXPECT_EQ(effects(), 2);

    const Handler forgetting = [&](const Request& made, Context& context) {
        context.transaction().execute("DEALLOCATE ALL");
        return creating()(made, context);
    };
    EXPECT_EQ(send_to(prepared, request(new_key()), forgetting).status, 201);
    EXPECT_THAT(observer.events(), ::testing::Contains("retried 26000"));
    EXPECT_EQ(send_to(prepared, request(new_key()), reading).status, 201);
    EXPECT_EQ(effects(), 4);
}

TEST_F(PreparedStatements, ThatAreForgottenDoNotFillTheServersMemory) {
    idempotency::Pool single(database.conninfo(), 1);
    auto by_default = changed();
    by_default.unit_of_work = {};
    const idempotency::Stage prepared(single, by_default);
    // Looks like a stale plan each time that it is known already, and is none.
    const Handler unsupported = [](const Request&, Context& context) {
        for (int i = 0; i < 100; ++i) {
            context.transaction().execute("SELECT " + std::to_string(i));
        }
        context.transaction().execute("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '0A000'; END $$");
        return Response{204, {}, ""};
    };
    for (int i = 0; i < 40; ++i) {
        EXPECT_EQ(send_to(prepared, request(new_key()), unsupported).status, 500);
    }
    send_to(prepared, request(new_key()), [](const Request&, Context& context) {
        EXPECT_LT(std::stoi(count_prepared(context)), 1400);
        return Response{204, {}, ""};
    });
}

TEST_F(Schema, IsQuoted) {
    database.value(R"(ALTER SCHEMA public RENAME TO "odd ""schema""")");
    auto elsewhere = changed();
    elsewhere.store.schema = R"(odd "schema")";
    const idempotency::Stage stage_there(pool, elsewhere);
    const std::string key = new_key();
    const Handler nothing = [](const Request&, Context&) { return Response{204, {}, ""}; };
    const Response first = send_to(stage_there, request(key), nothing);
    EXPECT_EQ(first.status, 204);
    expect_same_answer(first, send_to(stage_there, request(key), nothing));
}
