// The stage: which answers are kept, and which are not.
// Run by ctest against a real server.
#include <algorithm>

#include "stage_fixture.hpp"

using NotStored = StageTest;
using StoredFinal = StageTest;
using Unstorable = StageTest;
using InvalidKey = StageTest;
using Ignored = StageTest;
using BodyLimit = StageTest;

TEST_F(NotStored, 401StepUpThenRetrySucceeds) {
    const std::string key = new_key();
    const Response refused = send(request(key), answering(401));
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(keys(), 0);
    EXPECT_EQ(effects(), 0);
    EXPECT_EQ(send(request(key), creating()).status, 201);
    EXPECT_TRUE(is_replay(send(request(key), creating())));
    EXPECT_EQ(effects(), 1);
}

TEST_F(NotStored, 5xx429And428And3xxLeaveNoRow) {
    for (const int status : {500, 502, 503, 429, 428, 401, 301, 304, 402, 405, 406, 423}) {
        const std::string key = new_key();
        EXPECT_EQ(send(request(key), answering(status)).status, status);
        EXPECT_EQ(keys(), 0) << status;
        EXPECT_EQ(effects(), 0) << status;
    }
    EXPECT_THAT(observer.events(), ::testing::Contains("not_stored 429"));
}

TEST_F(NotStored, TheNextAttemptRuns) {
    const std::string key = new_key();
    send(request(key), answering(500));
    send(request(key), answering(503));
    EXPECT_EQ(send(request(key), creating()).status, 201);
    EXPECT_EQ(runs, 3);
}

TEST_F(NotStored, RequestInProgressOfTheHandlerItself) {
    const Handler handler = [](const Request&, Context& context) {
        return idempotency::Problem{409, "request_in_progress", "", "", {}, {}}.to_response(context.correlation_id());
    };
    EXPECT_EQ(send(request(new_key()), handler).status, 409);
    EXPECT_EQ(keys(), 0);
}

TEST_F(StoredFinal, 404ReplayedWithoutEffect) {
    const std::string key = new_key();
    const Response first = send(request(key), answering(404));
    EXPECT_EQ(first.status, 404);
    EXPECT_EQ(header(first, "Content-Type"), "application/problem+json");
    expect_same_answer(first, send(request(key), creating()));
    EXPECT_EQ(effects(), 0);
    EXPECT_EQ(runs, 1);
}

TEST_F(StoredFinal, 409RollsBackEffect) {
    const std::string key = new_key();
    Request lost = request(key);
    lost.headers.set("Correlation-Id", "first-1");
    const Response first = send(lost, answering(409));
    EXPECT_EQ(effects(), 0);
    lost.headers.set("Correlation-Id", "second-2");
    const Response replay = send(lost, creating());  // the slot became free again: the answer stays
    expect_same_answer(first, replay);
    EXPECT_EQ(json::parse(replay.body)["correlation_id"], "first-1");
    EXPECT_EQ(header(replay, "Correlation-Id"), "second-2");
    EXPECT_EQ(code(replay), "test_code");
}

TEST_F(StoredFinal, EveryFinalErrorIsKept) {
    for (const int status : {400, 403, 404, 409, 410, 412, 413, 415, 422}) {
        const std::string key = new_key();
        const Response first = send(request(key), answering(status));
        expect_same_answer(first, send(request(key), creating()));
    }
    EXPECT_EQ(effects(), 0);
}

TEST_F(StoredFinal, ErrorWithoutBodyIsKept) {
    const Handler handler = [](const Request&, Context&) { return Response{410, {}, ""}; };
    const std::string key = new_key();
    const Response first = send(request(key), handler);
    expect_same_answer(first, send(request(key), creating()));
}

TEST_F(StoredFinal, TheApplications422AndReuseAreToldApartByCode) {
    const std::string key = new_key();
    send(request(key), answering(422));
    EXPECT_EQ(code(send(request(key), creating())), "test_code");
    EXPECT_EQ(code(send(request(key, "{}"), creating())), "idempotency_key_reuse");
}

TEST_F(Unstorable, Success500AndRolledBack) {
    for (const char* body :
         {"not json", R"({"a":"\u0000"})", R"({"a":"\ud800"})", R"({"a":1e999999})", "\xff\xfe", "{\"a\":1} x"}) {
        const Handler handler = [&](const Request&, Context& context) {
            context.transaction().execute("INSERT INTO effects VALUES ('lost')");
            return Response::json(201, body);
        };
        const std::string key = new_key();
        const Response response = send(request(key), handler);
        EXPECT_EQ(response.status, 500) << body;
        EXPECT_EQ(code(response), "internal_error");
        EXPECT_EQ(keys(), 0);
        EXPECT_EQ(effects(), 0);
        EXPECT_EQ(send(request(key), [](const Request&, Context&) { return Response{204, {}, ""}; }).status, 204);
        database.value("DELETE FROM idempotency_keys");
    }
    EXPECT_THAT(observer.events(), ::testing::Contains(::testing::HasSubstr("unstorable the answer")).Times(6));
}

TEST_F(Unstorable, LargerThanTheLimit) {
    const Handler handler = [](const Request&, Context& context) {
        context.transaction().execute("INSERT INTO effects VALUES ('lost')");
        std::string body(1024 * 1024 + 1, '"');
        std::fill(body.begin() + 1, body.end() - 1, 'x');
        return Response::json(200, body);
    };
    EXPECT_EQ(send(request(new_key()), handler).status, 500);
    EXPECT_EQ(effects(), 0);
    EXPECT_EQ(keys(), 0);
}

TEST_F(Unstorable, HandlerThatThrows500NothingLeaks) {
    const Handler handler = [](const Request&, Context& context) -> Response {
        context.transaction().execute("INSERT INTO effects VALUES ('lost')");
        throw std::runtime_error("password is hunter2");
    };
    const Response response = send(request(new_key()), handler);
    EXPECT_EQ(response.status, 500);
    EXPECT_THAT(response.body, ::testing::Not(::testing::HasSubstr("hunter2")));
    EXPECT_THAT(observer.events(), ::testing::Contains("failed password is hunter2"));
    EXPECT_EQ(effects(), 0);
}

TEST_F(InvalidKey, 400) {
    for (const char* key : {"", "x", "{01890a5d-ac96-7b7c-8f89-37c3d0a6c001}", "01890a5dac967b7c8f8937c3d0a6c001",
                            "urn:uuid:01890a5d-ac96-7b7c-8f89-37c3d0a6c001", "01890a5d-ac96-4b7c-8f89-37c3d0a6c001",
                            "00000000-0000-0000-0000-000000000000", "\"01890a5d-ac96-7b7c-8f89-37c3d0a6c001",
                            "01890a5d-ac96-7b7c-8f89-37c3d0a6c001, 01890a5d-ac96-7b7c-8f89-37c3d0a6c001",
                            "\"01890a5d-ac96-7b7c-8f89-37c3d0a6c001\";a=1"}) {
        Request made = request("");
        made.headers.add("Idempotency-Key", key);
        const Response response = send(made, creating());
        EXPECT_EQ(response.status, 400) << key;
        const json document = json::parse(response.body);
        EXPECT_EQ(document["code"], "validation_failed");
        EXPECT_EQ(document["errors"][0]["pointer"], "#header/Idempotency-Key");
        EXPECT_EQ(document["errors"][0]["code"], "invalid_format");
    }
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(keys(), 0);
}

TEST_F(InvalidKey, TwoHeaderLinesAre400) {
    Request twice = request(new_key());
    twice.headers.add("idempotency-key", new_key());
    EXPECT_EQ(send(twice, creating()).status, 400);
    EXPECT_EQ(runs, 0);
}

TEST_F(InvalidKey, CaseQuotesAndSpacesAreOneKey) {
    const std::string key = new_key();
    std::string upper = key;
    for (char& c : upper) {
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    const Response first = send(request(key), creating());
    for (const std::string& spelling : {upper, '"' + key + '"', "  " + key + "\t", " \"" + upper + "\" "}) {
        expect_same_answer(first, send(request(spelling), creating()));
    }
    EXPECT_EQ(effects(), 1);
}

TEST_F(Ignored, OperationWithoutKeyParameter) {
    operation.keyed = false;
    const std::string key = new_key();
    EXPECT_EQ(send(request(key), creating()).status, 201);
    EXPECT_FALSE(is_replay(send(request(key), creating())));
    EXPECT_EQ(send(request("not a key"), creating()).status, 201);
    EXPECT_EQ(effects(), 3);
    EXPECT_EQ(keys(), 0);
}

TEST_F(Ignored, AnonymousActor) {
    actor.principal_id.reset();
    const std::string key = new_key();
    send(request(key), creating());
    send(request(key), creating());
    EXPECT_EQ(effects(), 2);
    EXPECT_EQ(keys(), 0);
}

TEST_F(Ignored, RequestWithoutKeyRunsInAPlainTransaction) {
    EXPECT_EQ(send(request(""), creating()).status, 201);
    EXPECT_EQ(send(request(""), answering(404)).status, 404);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(keys(), 0);
}

TEST_F(BodyLimit, 413IsNotStored) {
    operation.body_limit = 10;
    const std::string key = new_key();
    const Response response = send(request(key, std::string(11, ' ')), creating());
    EXPECT_EQ(response.status, 413);
    EXPECT_EQ(code(response), "content_too_large");
    EXPECT_EQ(keys(), 0);
    EXPECT_EQ(send(request(key, "{}"), creating()).status, 201);
}
