// Conformance: everything around the key that a client of HTTP expects.
// Run by tests/conformance/run; needs a server that speaks the orders contract.
#include "conformance_test.hpp"

using Http = ConformanceTest;

TEST_F(Http, InvalidBodiesAreToldApart) {
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
}

TEST_F(Http, MediaTypeComparesWithoutCaseAndParameters) {
    for (const char* type : {"Application/JSON", "application/json; charset=utf-8", "application/json;charset=utf-8"}) {
        EXPECT_EQ(post("/api/v1/orders", headers(new_key()), order(), type)->status, 201) << type;
    }
}

TEST_F(Http, IfMatchIsAListOfStrongTags) {
    const std::string id = id_of(create(new_key()));
    for (const char* other : {"\"2\"", "\"abc\"", "\"\"", "\"99999999999999999999\"", "W/\"1\"", "\"2\", \"01\""}) {
        expect_problem(put(id, new_key(), other), 412, "precondition_failed");
    }
    for (const char* malformed : {"1", "\"1", "1\"", "\"1\" \"2\"", ",", "*, \"1\"", "w/\"1\""}) {
        expect_problem(put(id, new_key(), malformed), 400, "validation_failed");
    }
    EXPECT_EQ(put(id, new_key(), ",\"7\" ,\"1\",")->status, 200);
    EXPECT_EQ(put(id, new_key(), "*")->status, 200);
}

TEST_F(Http, ListHasTheCallersOwnOnly) {
    create(new_key());
    std::swap(principal, other_principal);
    EXPECT_EQ(effects(), 0);
    create(new_key());
    EXPECT_EQ(effects(), 1);
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
        expect_problem(post("/api/v1/orders", with, order()), 401, "unauthorized");
        expect_problem(client().Get("/api/v1/orders", with), 401, "unauthorized");
        expect_problem(post("/api/v1/tokens", with, ""), 401, "unauthorized");
        expect_problem(post("/api/v1/notes", with, R"({"text":"x"})"), 401, "unauthorized");
    }
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

TEST_F(Http, HeadHasTheHeadersOfGetAndNoBody) {
    const Result get = client().Get("/api/v1/orders", headers());
    const Result head = client().Head("/api/v1/orders", headers());
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, 200);
    EXPECT_EQ(head->body, "");
    EXPECT_EQ(head->get_header_value("Content-Length"), get->get_header_value("Content-Length"));
}

TEST_F(Http, BodyOverTheLimitIs413AndTheKeyIsFree) {
    const std::string key = new_key();
    const std::string large = R"({"sku":")" + std::string(1024 * 1024, 'x') + R"(","quantity":1})";
    expect_problem(create(key, "", large), 413, "content_too_large");
    EXPECT_EQ(create(key)->status, 201);
}

TEST_F(Http, RequestWithoutLengthAndBodyIsAnsweredAtOnce) {
    const std::string key = new_key();
    httplib::Client one = client();
    one.set_read_timeout(4, 0);  // a server that waits for a body would take its own timeout
    httplib::Request request;
    request.method = "POST";
    request.path = "/api/v1/tokens";
    request.headers = headers(key);
    const Result result = one.send(request);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 201);
}

TEST_F(Http, ConnectionIsKeptForTheNextRequest) {
    httplib::Client one = client();
    one.set_keep_alive(true);
    const std::string key = new_key();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(one.Post("/api/v1/orders", headers(key), order(), "application/json")->status, 201);
    }
    EXPECT_EQ(effects(), 1);
}

TEST_F(Http, MetricsCountReplays) {
    const std::string line = R"(idempotency_claims_total{action="orders.create",outcome="replayed"} )";
    const auto replays = [&] {
        const std::string text = client().Get("/metrics")->body;
        const std::size_t at = text.find(line);
        return at == std::string::npos ? 0 : std::stoi(text.substr(at + line.size()));
    };
    const std::string key = new_key();
    create(key);
    const int before = replays();
    create(key);
    create(key);
    EXPECT_EQ(replays(), before + 2);
}
