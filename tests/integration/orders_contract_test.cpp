// The orders server over HTTP: what each operation answers, with and without a key.
// Run by ctest against the real program and a real server.
#include "orders_fixture.hpp"

using Orders = OrdersTest;
using Tokens = OrdersTest;
using Notes = OrdersTest;
using Http = OrdersTest;

TEST_F(Orders, CreateAnswers201WithETagAndReplays) {
    const std::string key = new_key();
    const Result first = create(key);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->status, 201);
    const json order = json::parse(first->body);
    EXPECT_EQ(order["version"], 1);
    EXPECT_EQ(order["sku"], "A-1");
    EXPECT_EQ(order["quantity"], 2);
    EXPECT_EQ(first->get_header_value("ETag"), "\"1\"");
    expect_same_answer(first, create(key));
    expect_same_answer(first, create('"' + key + '"', "", R"({"quantity":2.0, "sku":"\u0041-1"})"));
    EXPECT_EQ(orders(), 1);
}

TEST_F(Orders, ReuseIs422) {
    const std::string key = new_key();
    create(key);
    expect_problem(create(key, "", R"({"sku":"A-1","quantity":3})"), 422, "idempotency_key_reuse");
    expect_problem(post("/api/v1/tokens", headers(key), ""), 422, "idempotency_key_reuse");
    EXPECT_EQ(orders(), 1);
}

TEST_F(Orders, ReplaceNeedsTheVersionAndReplays) {
    const std::string id = json::parse(create(new_key())->body)["id"];
    expect_problem(put(id, new_key(), ""), 428, "precondition_required");
    expect_problem(put(id, new_key(), "1"), 400, "validation_failed");
    const std::string key = new_key();
    const Result first = put(id, key, "\"1\"");
    EXPECT_EQ(first->status, 200);
    EXPECT_EQ(json::parse(first->body)["version"], 2);
    EXPECT_EQ(first->get_header_value("ETag"), "\"2\"");
    expect_same_answer(first, put(id, key, "\"1\""));
    const std::string stale = new_key();
    const Result too_late = put(id, stale, "\"1\"");
    expect_problem(too_late, 412, "precondition_failed");
    expect_same_answer(too_late, put(id, stale, "\"1\""));
    expect_problem(put(new_key(), new_key(), "\"1\""), 404, "not_found");
    expect_problem(put("no-uuid", new_key(), "\"1\""), 404, "not_found");
}

TEST_F(Orders, IfMatchIsAListOfStrongTags) {
    const std::string id = json::parse(create(new_key())->body)["id"];
    for (const char* other : {"\"2\"", "\"abc\"", "\"\"", "\"99999999999999999999\"", "W/\"1\"", "\"2\", \"01\""}) {
        expect_problem(put(id, new_key(), other), 412, "precondition_failed");
    }
    for (const char* malformed : {"1", "\"1", "1\"", "\"1\" \"2\"", ",", "*, \"1\"", "w/\"1\""}) {
        expect_problem(put(id, new_key(), malformed), 400, "validation_failed");
    }
    EXPECT_EQ(put(id, new_key(), ",\"7\" ,\"1\",")->status, 200);
    EXPECT_EQ(put(id, new_key(), "*")->status, 200);
}

TEST_F(Orders, PreconditionRequiredIsNotStored) {
    const std::string id = json::parse(create(new_key())->body)["id"];
    const std::string key = new_key();
    expect_problem(put(id, key, ""), 428, "precondition_required");
    EXPECT_EQ(put(id, key, "\"1\"")->status, 200);
}

TEST_F(Orders, DeleteAnswers204WithoutBodyAndReplays) {
    const std::string id = json::parse(create(new_key())->body)["id"];
    const std::string key = new_key();
    const Result first = remove(id, key);
    EXPECT_EQ(first->status, 204);
    EXPECT_EQ(first->body, "");
    EXPECT_FALSE(first->has_header("Content-Type"));
    expect_same_answer(first, remove(id, key));
    const std::string again = new_key();
    const Result gone = remove(id, again);
    expect_problem(gone, 404, "not_found");
    expect_same_answer(gone, remove(id, again));
}

TEST_F(Orders, ListHasTheCallersOwnOnly) {
    create(new_key());
    create("", "", R"({"sku":"C-3","quantity":1})");
    principal = database.new_principal();
    EXPECT_EQ(client().Get("/api/v1/orders", headers())->body, R"({"orders":[]})");
    create(new_key());
    const json list = json::parse(client().Get("/api/v1/orders", headers())->body);
    ASSERT_EQ(list["orders"].size(), 1U);
    EXPECT_EQ(list["orders"][0]["sku"], "A-1");
}

TEST_F(Orders, SoldOutIsStored) {
    const std::string key = new_key();
    const Result first = create(key, "", R"({"sku":"SOLD-OUT","quantity":1})");
    expect_problem(first, 409, "sold_out");
    expect_same_answer(first, create(key, "", R"({"sku":"SOLD-OUT","quantity":1})"));
}

TEST_F(Orders, InvalidBodiesAreToldApart) {
    expect_problem(create(new_key(), "", "{"), 400, "invalid_json");
    expect_problem(create(new_key(), "", "[]"), 400, "validation_failed");
    expect_problem(post("/api/v1/orders", headers(new_key()), "sku=A", "text/plain"), 415, "unsupported_media_type");
    for (const char* body :
         {R"({})", R"({"sku":"","quantity":1})", R"({"sku":1,"quantity":1})", R"({"sku":"A","quantity":0})",
          R"({"sku":"A","quantity":-1})", R"({"sku":"A","quantity":1.5})", R"({"sku":"A","quantity":"1"})",
          R"({"sku":"A","quantity":1e10})", R"({"sku":"a\u0000b","quantity":1})"}) {
        const Result result = create(new_key(), "", body);
        expect_problem(result, 400, "validation_failed");
        EXPECT_THAT(json::parse(result->body)["errors"][0]["pointer"], ::testing::AnyOf("#/sku", "#/quantity")) << body;
    }
    EXPECT_EQ(orders(), 0);
}

TEST_F(Orders, MediaTypeComparesWithoutCaseAndParameters) {
    for (const char* type : {"Application/JSON", "application/json; charset=utf-8", "application/json;charset=utf-8"}) {
        EXPECT_EQ(post("/api/v1/orders", headers(new_key()), R"({"sku":"A-1","quantity":2})", type)->status, 201)
            << type;
    }
}

TEST_F(Orders, EveryKeyedOperationRefusesAWrongKey) {
    for (const std::string& key : {std::string("nope"), new_key() + ", " + new_key()}) {
        expect_problem(create(key), 400, "validation_failed");
        expect_problem(put(new_key(), key, "\"1\""), 400, "validation_failed");
        expect_problem(remove(new_key(), key), 400, "validation_failed");
        expect_problem(post("/api/v1/tokens", headers(key), ""), 400, "validation_failed");
    }
    Headers twice = headers(new_key());
    twice.emplace("Idempotency-Key", new_key());
    expect_problem(post("/api/v1/orders", twice, R"({"sku":"A-1","quantity":2})"), 400, "validation_failed");
    EXPECT_EQ(keys(), 0);
}

TEST_F(Tokens, SecretIsShownOnceAndStoredNowhere) {
    const std::string key = new_key();
    const Result first = post("/api/v1/tokens", headers(key), "");
    EXPECT_EQ(first->status, 201);
    const json token = json::parse(first->body);
    const Result replay = post("/api/v1/tokens", headers(key), "");
    expect_problem(replay, 409, "conflict");
    EXPECT_TRUE(is_replay(replay));
    EXPECT_EQ(json::parse(replay->body)["reason"], "one_time_secret");
    EXPECT_EQ(database.value("SELECT count(*) FROM tokens"), "1");
    EXPECT_EQ(database.value("SELECT count(*) FROM idempotency_keys AS k, tokens AS t WHERE k::text LIKE '%" +
                             token["secret"].get<std::string>() + "%' OR t::text LIKE '%" +
                             token["secret"].get<std::string>() + "%'"),
              "0");
    EXPECT_EQ(database.value("SELECT resource_id FROM idempotency_keys"), token["id"].get<std::string>());
}

TEST_F(Notes, TheHeaderHasNoEffect) {
    const std::string key = new_key();
    const Result first = post("/api/v1/notes", headers(key), R"({"text":"hello"})");
    EXPECT_EQ(first->status, 201);
    const Result second = post("/api/v1/notes", headers(key), R"({"text":"hello"})");
    EXPECT_EQ(second->status, 201);
    EXPECT_NE(second->body, first->body);
    EXPECT_FALSE(is_replay(second));
    EXPECT_EQ(post("/api/v1/notes", headers("not a key"), R"({"text":"hello"})")->status, 201);
    EXPECT_EQ(keys(), 0);
}

TEST_F(Http, AnonymousAndUnknownPrincipalsGet401FromEverythingButHealth) {
    EXPECT_EQ(client().Get("/health")->status, 200);
    for (const char* authorization :
         {"", "Bearer", "Bearer x", "Basic abc", "Bearer 01890a5d-ac96-7b7c-8f89-37c3d0a6c001"}) {
        Headers with;
        if (*authorization != '\0') {
            with.emplace("Authorization", authorization);
        }
        with.emplace("Idempotency-Key", new_key());
        expect_problem(post("/api/v1/orders", with, R"({"sku":"A-1","quantity":2})"), 401, "unauthorized");
        expect_problem(client().Get("/api/v1/orders", with), 401, "unauthorized");
        expect_problem(post("/api/v1/tokens", with, ""), 401, "unauthorized");
        expect_problem(post("/api/v1/notes", with, R"({"text":"x"})"), 401, "unauthorized");
    }
    EXPECT_EQ(keys(), 0);
}

TEST_F(Http, SchemeOfAuthorizationComparesWithoutCase) {
    EXPECT_EQ(client().Get("/api/v1/orders", {{"Authorization", "bearer " + principal}})->status, 200);
}

TEST_F(Http, UnknownPathsAndMethodsAreProblems) {
    expect_problem(client().Get("/nope", headers()), 404, "not_found");
    const auto expect_not_allowed = [](const Result& result, const std::string& allowed) {
        expect_problem(result, 405, "method_not_allowed");
        EXPECT_EQ(result->get_header_value("Allow"), allowed);
    };
    expect_not_allowed(post("/health", headers(), "{}"), "GET, HEAD");
    expect_not_allowed(client().Patch("/api/v1/orders", headers(), "{}", "application/json"), "GET, HEAD, POST");
    expect_not_allowed(client().Get("/api/v1/orders/x", headers()), "PUT, DELETE");
    expect_not_allowed(client().Get("/api/v1/tokens", headers()), "POST");
}

TEST_F(Http, BodyOverTheLimitIs413AndNotStored) {
    const std::string key = new_key();
    const std::string large = R"({"sku":")" + std::string(1024 * 1024, 'x') + R"(","quantity":1})";
    expect_problem(create(key, "", large), 413, "content_too_large");
    EXPECT_EQ(keys(), 0);
    EXPECT_EQ(create(key)->status, 201);
}

TEST_F(Http, ChunkedBodyHasTheSameFingerprint) {
    const std::string key = new_key();
    const Result first = create(key);
    httplib::Client chunking = client();
    const Result replay = chunking.Post(
        "/api/v1/orders", headers(key),
        [](std::size_t, httplib::DataSink& sink) {
            sink.write(R"({"sku":"A-1",)", 13);
            sink.write(R"("quantity":2})", 13);
            sink.done();
            return true;
        },
        "application/json");
    expect_same_answer(first, replay);
}

TEST_F(Http, PathIsFingerprintedAsItWasSent) {
    const std::string key = new_key();
    remove("%6Eo-uuid", key);
    EXPECT_EQ(code(remove("no-uuid", key)), "idempotency_key_reuse");
}

TEST_F(Http, CorrelationIdIsTheRequests) {
    Headers with = headers(new_key());
    with.emplace("Correlation-Id", "abc-123");
    EXPECT_EQ(post("/api/v1/orders", with, R"({"sku":"A-1","quantity":2})")->get_header_value("Correlation-Id"),
              "abc-123");
}
