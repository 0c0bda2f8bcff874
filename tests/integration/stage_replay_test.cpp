// The stage: what a repeat gets.
// Run by ctest against a real server.
#include "stage_fixture.hpp"

using ETag = StageTest;
using Replay = StageTest;
using Reuse = StageTest;
using Canonical = StageTest;
using Expired = StageTest;
using PerPrincipal = StageTest;
using OneTimeSecret = StageTest;

TEST_F(Replay, ReturnsStoredResponseWithHeader) {
    const std::string key = new_key();
    const Response first = send(request(key), creating());
    const Response replay = send(request(key), creating());
    EXPECT_EQ(first.status, 201);
    EXPECT_EQ(header(first, "ETag"), "\"1\"");
    expect_same_answer(first, replay);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(header(replay, "Cache-Control"), "no-store");
    EXPECT_THAT(observer.events(), ::testing::ElementsAre("started", "stored 201", "replayed 201"));
}

TEST_F(Replay, FirstAnswerCarriesTheBodyAsStored) {
    const std::string body = "{ \"b\" : 1.0, \"a\":\t[1e2, \"\\u0041\"], \"b\": 2.50 }";
    const Handler handler = [&](const Request&, Context&) { return Response::json(200, body); };
    const std::string key = new_key();
    const Response first = send(request(key), handler);
    EXPECT_EQ(first.body, database.value("SELECT response_body FROM idempotency_keys"));
    expect_same_answer(first, send(request(key), handler));
}

TEST_F(Replay, KeepsStatus201And204AndTheMissingBody) {
    const Handler without_body = [](const Request&, Context&) { return Response{204, {}, ""}; };
    const std::string key = new_key();
    const Response first = send(request(key), without_body);
    const Response replay = send(request(key), without_body);
    expect_same_answer(first, replay);
    EXPECT_EQ(replay.status, 204);
    EXPECT_EQ(replay.body, "");
    EXPECT_EQ(header(replay, "Content-Type"), "");
}

TEST_F(Replay, HasTheCorrelationIdOfTheCurrentRequest) {
    const std::string key = new_key();
    Request repeat = request(key);
    send(repeat, creating());
    repeat.headers.set("Correlation-Id", "mine-2");
    EXPECT_EQ(header(send(repeat, creating()), "Correlation-Id"), "mine-2");
    repeat.headers.set("Correlation-Id", "not one word\r\nX: y");
    EXPECT_NE(header(send(repeat, creating()), "Correlation-Id"), "not one word\r\nX: y");
}

TEST_F(Replay, StoresTheResourceId) {
    const Response first = send(request(new_key()), creating());
    EXPECT_EQ(database.value("SELECT resource_id FROM idempotency_keys"),
              json::parse(first.body)["id"].get<std::string>());
    EXPECT_EQ(database.value("SELECT action FROM idempotency_keys"), "orders.create");
}

TEST_F(ETag, FromVersion) {
    operation.etag_statuses = {200};
    const auto answer = [](const char* body) {
        return [body](const Request&, Context&) { return Response::json(200, body); };
    };
    const std::string with_version = new_key();
    send(request(with_version), answer(R"({"version": 42})"));
    EXPECT_EQ(header(send(request(with_version), creating()), "ETag"), "\"42\"");
    const std::string text_version = new_key();
    send(request(text_version), answer(R"({"version": "42"})"));
    EXPECT_EQ(header(send(request(text_version), creating()), "ETag"), "");
    const std::string not_declared = new_key();
    operation.etag_statuses = {};
    send(request(not_declared), answer(R"({"version": 42})"));
    EXPECT_EQ(header(send(request(not_declared), creating()), "ETag"), "");
}

TEST_F(Reuse, DifferentBody422) {
    const std::string key = new_key();
    send(request(key, R"({"sku":"A-1"})"), creating());
    const Response other = send(request(key, R"({"sku":"A-2"})"), creating());
    EXPECT_EQ(other.status, 422);
    EXPECT_EQ(code(other), "idempotency_key_reuse");
    EXPECT_FALSE(is_replay(other));
    EXPECT_EQ(effects(), 1);
}

TEST_F(Reuse, DifferentPath422) {
    const std::string key = new_key();
    send(request(key), creating());
    EXPECT_EQ(code(send(request(key, R"({"sku":"A-1"})", "/api/v1/others"), creating())), "idempotency_key_reuse");
    EXPECT_EQ(code(send(request(key, R"({"sku":"A-1"})", "/api/v1/orders", "PUT"), creating())),
              "idempotency_key_reuse");
    EXPECT_EQ(effects(), 1);
}

TEST_F(Reuse, TheQueryIsNotCovered) {
    const std::string key = new_key();
    send(request(key), creating());
    EXPECT_TRUE(is_replay(send(request(key, R"({"sku":"A-1"})", "/api/v1/orders?trace=1"), creating())));
}

TEST_F(Reuse, AfterAnExpiredKeyWasTakenOver422) {
    const std::string key = new_key();
    send(request(key, R"({"sku":"A-1"})"), creating());
    database.value("UPDATE idempotency_keys SET expires_at = now()");
    EXPECT_EQ(send(request(key, R"({"sku":"A-2"})"), creating()).status, 201);
    EXPECT_EQ(code(send(request(key, R"({"sku":"A-1"})"), creating())), "idempotency_key_reuse");
}

TEST_F(Canonical, EquivalentJSONReplays) {
    const std::string key = new_key();
    const Response first = send(request(key, R"({"sku":"A-1","quantity":1,"note":"/"})"), creating());
    for (const char* body :
         {R"({ "quantity" : 1.0, "note" : "\/", "sku" : "\u0041-1" })", R"({"note":"/","quantity":1e0,"sku":"A-1"})",
          "\n{\"quantity\":10e-1,\"sku\":\"A\\u002d1\",\"note\":\"\\u002F\"}\t"}) {
        expect_same_answer(first, send(request(key, body), creating()));
    }
    EXPECT_EQ(code(send(request(key, R"({"sku":"A-1","quantity":2,"note":"/"})"), creating())),
              "idempotency_key_reuse");
    EXPECT_EQ(effects(), 1);
}

TEST_F(Canonical, BodyWithoutCanonicalFormIsComparedByItsBytes) {
    const std::string key = new_key();
    const std::string duplicate = R"({"a":1,"\u0061":2})";
    send(request(key, duplicate), creating());
    EXPECT_TRUE(is_replay(send(request(key, duplicate), creating())));
    EXPECT_EQ(code(send(request(key, R"({"a":1,"a":2})"), creating())), "idempotency_key_reuse");
}

TEST_F(Expired, TreatedAsAbsent) {
    const std::string key = new_key();
    send(request(key), creating());
    database.value("UPDATE idempotency_keys SET expires_at = now()");
    const Response second = send(request(key), creating());
    EXPECT_EQ(second.status, 201);
    EXPECT_FALSE(is_replay(second));
    EXPECT_EQ(effects(), 2);
    database.value("UPDATE idempotency_keys SET expires_at = now(), state = 'in_progress'");
    EXPECT_EQ(send(request(key), creating()).status, 201);
    EXPECT_EQ(effects(), 3);
}

TEST_F(Expired, TheLifeOfAKeyIsAnOption) {
    auto with_ttl = options(std::chrono::milliseconds(5000));
    with_ttl.key_ttl = std::chrono::seconds(90);
    const idempotency::Stage short_lived(pool, with_ttl);
    EXPECT_EQ(short_lived.handle(operation, actor, request(new_key()), creating()).status, 201);
    EXPECT_EQ(database.value("SELECT expires_at - created_at FROM idempotency_keys"), "00:01:30");
}

TEST_F(Expired, KeyOlderThanItsLifeIsRefusedWhenTheServerLooksAtIt) {
    database.value("ALTER DATABASE " + database.name() + " SET idempotency.clock_skew = '5min'");
    const std::string old = "01890a5d-ac96-7b7c-8f89-37c3d0a6c001";  // of June 2023
    for (const bool deferred : {false, true}) {
        operation.deferred = deferred;
        const Response refused = send(request(old), creating());
        EXPECT_EQ(refused.status, 422);
        EXPECT_EQ(code(refused), "idempotency_key_expired");
        const Response hidden = send(request(old), [](const Request&, Context& context) {
            try {
                context.transaction().execute("INSERT INTO effects VALUES ('wrong')");
            } catch (const idempotency::Error&) {
                return idempotency::Problem{404, "not_found", "", "", {}, {}}.to_response("");
            }
            return Response::json(201, "{}");
        });
        EXPECT_EQ(code(hidden), "idempotency_key_expired") << "whatever the handler makes of it";
    }
    const Response future = send(request("ffffffff-ac96-7b7c-8f89-37c3d0a6c001"), creating());
    EXPECT_EQ(future.status, 400);
    EXPECT_EQ(json::parse(future.body)["errors"][0]["pointer"], "#header/Idempotency-Key");
    EXPECT_THAT(observer.events(), ::testing::Each("expired"));
    EXPECT_EQ(keys() + effects(), 0);

    const std::string fresh = new_key();
    const Response first = send(request(fresh), creating());
    expect_same_answer(first, send(request(fresh), creating()));
    database.value("UPDATE idempotency_keys SET key = '" + old + "'");
    EXPECT_TRUE(is_replay(send(request(old), creating()))) << "never when a row exists";
}

TEST_F(PerPrincipal, SameKeyIndependent) {
    const std::string key = new_key();
    const Response first = send(request(key), creating());
    actor.principal_id = idempotency::Uuid::parse(database.new_principal());
    const Response other = send(request(key, R"({"sku":"another"})"), creating());
    EXPECT_EQ(other.status, 201);
    EXPECT_NE(other.body, first.body);
    EXPECT_EQ(effects(), 2);
    EXPECT_TRUE(is_replay(send(request(key, R"({"sku":"another"})"), creating())));
}

TEST_F(PerPrincipal, UnknownPrincipalIs401) {
    actor.principal_id = idempotency::Uuid::parse(new_key());
    const Response response = send(request(new_key()), creating());
    EXPECT_EQ(response.status, 401);
    EXPECT_EQ(code(response), "unknown_principal");
    EXPECT_EQ(effects(), 0);
}

TEST_F(OneTimeSecret, NotStoredReplay409) {
    const std::string secret = "s3cr3t-" + new_key();
    const Handler handler = [&](const Request&, Context& context) {
        ++runs;
        context.transaction().execute("INSERT INTO effects VALUES ('token')");
        context.mark_one_time_secret();
        return Response::json(201, R"({"id":"01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa","secret":")" + secret + R"("})");
    };
    const std::string key = new_key();
    const Response first = send(request(key), handler);
    EXPECT_EQ(first.status, 201);
    EXPECT_THAT(first.body, ::testing::HasSubstr(secret));
    const Response replay = send(request(key), handler);
    EXPECT_EQ(replay.status, 409);
    EXPECT_TRUE(is_replay(replay));
    const json document = json::parse(replay.body);
    EXPECT_EQ(document["code"], "conflict");
    EXPECT_EQ(document["reason"], "one_time_secret");
    EXPECT_EQ(document["hint"], "create a new one");
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(
        database.value("SELECT response_status || ' ' || response_body || ' ' || resource_id FROM idempotency_keys"),
        R"(201 {"one_time_secret": true} 01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa)");
    EXPECT_EQ(database.value("SELECT count(*) FROM idempotency_keys AS k WHERE k::text LIKE '%" + secret + "%'"), "0");
}

TEST_F(OneTimeSecret, MarkedErrorIsStoredAsItIs) {
    const Handler handler = [&](const Request&, Context& context) {
        context.mark_one_time_secret();
        return idempotency::Problem{404, "not_found", "Not found", "No.", {}, {}}.to_response(context.correlation_id());
    };
    const std::string key = new_key();
    const Response first = send(request(key), handler);
    expect_same_answer(first, send(request(key), handler));
}
