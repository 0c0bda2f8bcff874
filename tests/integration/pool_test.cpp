// Where connections come from: the pool's limits, a server that restarts, and an application's own source.
// Run by ctest against a real server.
#include <filesystem>
#include <future>
#include <thread>

#include "stage_fixture.hpp"

using PoolLimit = StageTest;
using OwnSource = StageTest;

namespace {

/// A connection for every request, as a source of an application may have it.
class Unpooled final : public idempotency::ConnectionSource {
public:
    explicit Unpooled(std::string conninfo) : conninfo_(std::move(conninfo)) {}

    std::unique_ptr<idempotency::Connection> acquire(std::chrono::steady_clock::time_point deadline) override {
        ++made;
        return std::make_unique<idempotency::Connection>(conninfo_, deadline);
    }
    void release(std::unique_ptr<idempotency::Connection> connection) noexcept override { connection.reset(); }

    std::atomic<int> made{0};

private:
    std::string conninfo_;
};

std::string output_of(const std::string& command) {
    const std::unique_ptr<FILE, decltype(&pclose)> pipe(popen(command.c_str(), "r"), pclose);
    char line[1000] = "";
    return fgets(line, sizeof line, pipe.get()) == nullptr ? "" : std::string(line, strcspn(line, "\n"));
}

}  // namespace

TEST_F(PoolLimit, IsNeverExceededAndEveryRequestGetsItsTurn) {
    idempotency::Pool three(database.conninfo() + " application_name=three", 3);
    const idempotency::Stage limited(three, options(std::chrono::milliseconds(5000)));
    std::atomic<int> most{0};
    std::vector<std::future<Response>> answers;
    for (int i = 0; i < 20; ++i) {
        answers.push_back(std::async(std::launch::async, [&] {
            return limited.handle(operation, actor, request(new_key()), [&](const Request& made, Context& context) {
                const auto count = context.transaction().execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'three'");
                const int now = std::stoi(std::string(count.get(0, 0).value()));
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
                return creating()(made, context);
            });
        }));
    }
    for (auto& answer : answers) {
        EXPECT_EQ(answer.get().status, 201);
    }
    EXPECT_EQ(effects(), 20);
    EXPECT_LE(most, 3);
}

TEST_F(PoolLimit, RequestThatGetsNoConnectionIs503WithRetryAfter) {
    idempotency::Pool single(database.conninfo(), 1);
    auto impatient = options(std::chrono::milliseconds(5000));
    impatient.unit_of_work.acquire_timeout = std::chrono::milliseconds(20);
    impatient.unit_of_work.tx_retry_max = 0;
    const idempotency::Stage stage_of_one(single, impatient);
    auto lent = single.acquire(std::chrono::steady_clock::time_point::max());
    const Response busy = stage_of_one.handle(operation, actor, request(new_key()), creating());
    EXPECT_EQ(busy.status, 503);
    EXPECT_EQ(code(busy), "service_unavailable");
    EXPECT_NE(header(busy, "Retry-After"), "");
    single.release(std::move(lent));
    EXPECT_EQ(stage_of_one.handle(operation, actor, request(new_key()), creating()).status, 201);
}

TEST_F(OwnSource, ServesTheStage) {
    Unpooled source(database.conninfo());
    const idempotency::Stage own(source, options(std::chrono::milliseconds(5000)));
    const std::string key = new_key();
    const Response first = own.handle(operation, actor, request(key), creating());
    expect_same_answer(first, own.handle(operation, actor, request(key), creating()));
    EXPECT_EQ(source.made, 2);
}

TEST(ServerRestart, IsSurvivedByThePool) {
    char folder[] = "/tmp/restartXXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    std::filesystem::permissions(folder, std::filesystem::perms(0755));
    const std::string cluster = SOURCE_FOLDER "/tests/support/cluster";
    const std::string conninfo = output_of(cluster + " start " + folder);
    ASSERT_NE(conninfo, "");
    idempotency::Pool pool(conninfo, 4);
    idempotency::UnitOfWork unit_of_work(pool, {});
    const auto backend = [&] {
        std::string pid;
        unit_of_work.run([&](idempotency::Transaction& transaction) {
            pid = transaction.execute("SELECT pg_backend_pid()").get(0, 0).value();
        });
        return pid;
    };
    const std::string before = backend();
    EXPECT_EQ(backend(), before);
    EXPECT_EQ(std::system((cluster + " restart " + folder).c_str()), 0);
    EXPECT_NE(backend(), before);
    EXPECT_EQ(std::system((cluster + " stop " + folder).c_str()), 0);
}
