// Handlers on cpp-httplib's own types, behind the stage.
// Run by ctest against a real server.
#include <thread>

#include "adapters/httplib.hpp"
#include "stage_fixture.hpp"

namespace {

class NativeHandler : public StageTest {
protected:
    NativeHandler() : adapter(stage, [this](const Request&) { return actor; }) {}
    ~NativeHandler() override {
        server.stop();
        serving.join();
    }

    void serve(idempotency::HttplibAdapter::NativeHandler handler) {
        server.Post("/api/v1/orders", adapter.wrap_native(operation, std::move(handler)));
        port = server.bind_to_any_port("127.0.0.1");
        serving = std::thread([this] { server.listen_after_bind(); });
    }

    httplib::Result post(const std::string& key) const {
        httplib::Client client("127.0.0.1", port);
        return client.Post("/api/v1/orders", {{"Idempotency-Key", key}}, R"({"sku":"A-1"})", "application/json");
    }

    idempotency::HttplibAdapter adapter;
    httplib::Server server;
    int port = 0;
    std::thread serving;
};

}  // namespace

TEST_F(NativeHandler, SetsTheWholeAnswer) {
    serve([this](const httplib::Request& made, httplib::Response& response, Context& context) {
        ++runs;
        context.transaction().execute("INSERT INTO effects VALUES ($1)", {made.body});
        response.set_content(R"({"id":"01890a5d-ac96-7b7c-8f89-37c3d0a6c001","version":1})", "application/json");
    });
    const std::string key = new_key();
    const httplib::Result first = post(key);
    ASSERT_TRUE(first);
    EXPECT_EQ(first->status, 200);
    EXPECT_EQ(first->get_header_value("ETag"), "\"1\"");
    const httplib::Result replay = post(key);
    EXPECT_EQ(replay->body, first->body);
    EXPECT_EQ(replay->get_header_value("Idempotent-Replay"), "true");
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(effects(), 1);
}

TEST_F(NativeHandler, ThatStreamsIsRefusedAtOnceAndNothingIsKept) {
    serve([](const httplib::Request&, httplib::Response& response, Context& context) {
        context.transaction().execute("INSERT INTO effects VALUES ('streamed')");
        response.set_chunked_content_provider("application/json", [](std::size_t, httplib::DataSink& sink) {
            sink.done();
            return true;
        });
    });
    const httplib::Result result = post(new_key());
    ASSERT_TRUE(result);
    EXPECT_EQ(result->status, 500);
    EXPECT_THAT(observer.events(), ::testing::Contains(::testing::HasSubstr("failed the handler streams its answer")));
    EXPECT_EQ(effects(), 0);
    EXPECT_EQ(keys(), 0);
}
