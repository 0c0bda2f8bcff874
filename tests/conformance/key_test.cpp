// Conformance: what the header Idempotency-Key may hold, and where it counts.
// Run by tests/conformance/run; needs a server that speaks the orders contract.
#include <boost/asio/ip/tcp.hpp>

#include "conformance_test.hpp"

using Key = ConformanceTest;

TEST_F(Key, WhatIsNotOneUuidOfVersion7Is400OnEveryKeyedOperation) {
    for (const std::string& key :
         {std::string("nope"), new_key() + ", " + new_key(), "{" + new_key() + "}", "urn:uuid:" + new_key(),
          new_key() + ";a=1", std::string("9b0c2d6a-1111-4222-8333-444455556666"),
          std::string("00000000-0000-0000-0000-000000000000")}) {
        for (const Result& result : {create(key), put(new_key(), key, "\"1\""), remove(new_key(), key),
                                     post("/api/v1/tokens", headers(key), "")}) {
            expect_problem(result, 400, "validation_failed");
            const json error = json::parse(result->body)["errors"][0];
            EXPECT_EQ(error["pointer"], "#header/Idempotency-Key");
            EXPECT_EQ(error["code"], "invalid_format");
        }
    }
    EXPECT_EQ(effects(), 0);
}

TEST_F(Key, TwoHeaderLinesAre400) {
    Headers twice = headers(new_key());
    twice.emplace("Idempotency-Key", new_key());
    expect_problem(post("/api/v1/orders", twice, order()), 400, "validation_failed");
    EXPECT_EQ(effects(), 0);
}

// Written by hand: newer versions of the client refuse to send such a header.
TEST_F(Key, WhiteSpaceAroundItIsNoPartOfIt) {
    const std::string key = new_key();
    EXPECT_EQ(create(key)->status, 201);
    const std::string host = authority();
    const auto colon = host.rfind(':');
    boost::asio::ip::tcp::iostream server(host.substr(0, colon), host.substr(colon + 1));
    server << "POST /api/v1/orders HTTP/1.1\r\nHost: " << host << "\r\nAuthorization: Bearer " << principal
           << "\r\nIdempotency-Key: \t " << key
           << " \t\r\nContent-Type: application/json\r\nContent-Length: " << order().size()
           << "\r\nConnection: close\r\n\r\n"
           << order() << std::flush;
    const std::string answer{std::istreambuf_iterator<char>(server), {}};
    EXPECT_THAT(answer, ::testing::HasSubstr(" 201 "));
    EXPECT_THAT(answer, ::testing::ContainsRegex("[Ii]dempotent-[Rr]eplay: true"));
    EXPECT_EQ(effects(), 1);
}

TEST_F(Key, WithoutItEveryRequestRuns) {
    for (int i = 0; i < 2; ++i) {
        const Result result = create("");
        EXPECT_EQ(result->status, 201);
        EXPECT_FALSE(is_replay(result));
    }
    EXPECT_EQ(effects(), 2);
}

TEST_F(Key, HasNoEffectOnAnOperationThatDoesNotDeclareIt) {
    const std::string key = new_key();
    const Result first = post("/api/v1/notes", headers(key), R"({"text":"hello"})");
    EXPECT_EQ(first->status, 201);
    const Result second = post("/api/v1/notes", headers(key), R"({"text":"hello"})");
    EXPECT_EQ(second->status, 201);
    EXPECT_NE(second->body, first->body);
    EXPECT_FALSE(is_replay(second));
    EXPECT_EQ(post("/api/v1/notes", headers("not a key"), R"({"text":"hello"})")->status, 201);
}
