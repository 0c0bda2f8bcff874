// The stage: round trips, deferred operations, statements that finish a request, and connections that are cut.
// Run by ctest against a real server, through a proxy that counts and cuts.
#include "proxy.hpp"
#include "stage_fixture.hpp"

namespace {

class ProxiedStageTest : public StageTest {
protected:
    ProxiedStageTest() {
        send(request(""), creating());         // connected, and the functions' library loaded
        send(request(new_key()), creating());  // statements prepared
        database.value("DELETE FROM effects; DELETE FROM idempotency_keys");
        runs = 0;
        proxy.round_trips();
    }

    Response send(const Request& made, const Handler& handler) {
        return proxied.handle(operation, actor, made, handler);
    }

    /// Round trips of one request.
    int trips(const Request& made, const Handler& handler) {
        proxy.round_trips();
        last = send(made, handler);
        return proxy.round_trips();
    }

    /// One statement makes effect and answer.
    [[nodiscard]] Handler finishing() {
        return [this](const Request&, Context& context) {
            ++runs;
            auto response = context.finish_with(
                "INSERT INTO effects VALUES ($1) RETURNING 201, jsonb_build_object('id', gen_random_uuid(), 'note', note), NULL::uuid",
                {"finished"});
            return response ? *response : Response{404, {}, ""};
        };
    }

    Proxy proxy{database.conninfo()};
    idempotency::Pool one_connection{proxy.conninfo(), 1};
    idempotency::Stage proxied{one_connection, options(std::chrono::milliseconds(5000))};
    Response last;
};

}  // namespace

using RoundTrips = ProxiedStageTest;
using Deferred = ProxiedStageTest;
using FinishWith = ProxiedStageTest;
using CutConnection = ProxiedStageTest;

TEST_F(RoundTrips, FirstCallCostsWhatBeginStatementCommitCost) {
    EXPECT_EQ(trips(request(new_key()), creating()), 3);
    EXPECT_EQ(last.status, 201);
}

TEST_F(RoundTrips, RepeatsCostTwo) {
    const std::string key = new_key();
    send(request(key), creating());
    EXPECT_EQ(trips(request(key), creating()), 2);
    EXPECT_TRUE(is_replay(last));
    EXPECT_EQ(trips(request(key, "{}"), creating()), 2);
    EXPECT_EQ(code(last), "idempotency_key_reuse");
}

TEST_F(RoundTrips, FinalErrorCostsThree) {
    EXPECT_EQ(trips(request(new_key()), answering(404)), 3);
    EXPECT_EQ(keys(), 1);
}

TEST_F(RoundTrips, WithoutAKeyBeginTravelsWithTheStatement) { EXPECT_EQ(trips(request(""), creating()), 2); }

TEST_F(Deferred, SavesARoundTrip) {
    operation.deferred = true;
    const std::string key = new_key();
    EXPECT_EQ(trips(request(key), creating()), 2);
    const Response first = last;
    EXPECT_EQ(trips(request(key), creating()), 2);
    expect_same_answer(first, last);
    EXPECT_EQ(effects(), 1);
}

TEST_F(Deferred, TheHandlersStatementOfARepeatNeverHappened) {
    operation.deferred = true;
    const std::string key = new_key();
    send(request(key), creating());
    bool went_on = false;
    const Response replay = send(request(key), [&](const Request&, Context& context) {
        try {
            context.transaction().execute("INSERT INTO effects VALUES ('second')");
            went_on = true;
        } catch (const idempotency::Error&) {
            EXPECT_THROW(context.transaction().execute("INSERT INTO effects VALUES ('third')"),
                         idempotency::KeyNotStarted);
        }
        return Response::json(200, R"({"handler":"answered all the same"})");
    });
    EXPECT_FALSE(went_on);
    EXPECT_TRUE(is_replay(replay));
    EXPECT_EQ(replay.status, 201);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(code(send(request(key, "{}"), creating())), "idempotency_key_reuse");
    EXPECT_EQ(effects(), 1);
}

TEST_F(Deferred, HandlersWithoutAStatementAreDecidedByTheClaimToo) {
    operation.deferred = true;
    const Handler silent = [](const Request&, Context&) { return Response{204, {}, ""}; };
    const Handler refusing = [](const Request&, Context& context) {
        return idempotency::Problem{404, "not_found", "", "", {}, {}}.to_response(context.correlation_id());
    };
    const std::string key = new_key();
    EXPECT_EQ(trips(request(key), silent), 1);
    EXPECT_EQ(last.status, 204);
    const Response replay = send(request(key), refusing);
    EXPECT_TRUE(is_replay(replay));
    EXPECT_EQ(replay.status, 204);
    const std::string other = new_key();
    const Response first = send(request(other), refusing);
    EXPECT_EQ(first.status, 404);
    expect_same_answer(first, send(request(other), silent));
}

TEST_F(FinishWith, IsOneRoundTripWhenDeferred) {
    operation.deferred = true;
    const std::string key = new_key();
    EXPECT_EQ(trips(request(key), finishing()), 1);
    const Response first = last;
    EXPECT_EQ(first.status, 201);
    EXPECT_EQ(trips(request(key), finishing()), 1);
    expect_same_answer(first, last);
    EXPECT_EQ(code(send(request(key, "{}"), finishing())), "idempotency_key_reuse");
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(keys(), 1);
}

TEST_F(FinishWith, IsTwoRoundTripsOtherwise) {
    const std::string key = new_key();
    EXPECT_EQ(trips(request(key), finishing()), 2);
    expect_same_answer(last, send(request(key), finishing()));
    EXPECT_EQ(effects(), 1);
}

TEST_F(FinishWith, WithoutARowNothingIsKeptAndTheHandlerAnswersSomethingElse) {
    for (const bool deferred : {false, true}) {
        operation.deferred = deferred;
        const std::string key = new_key();
        const Handler handler = [](const Request&, Context& context) {
            auto response =
                context.finish_with("UPDATE effects SET note = 'x' WHERE false RETURNING 200, NULL::jsonb, NULL::uuid");
            return response
                       ? *response
                       : idempotency::Problem{404, "not_found", "", "", {}, {}}.to_response(context.correlation_id());
        };
        const Response first = send(request(key), handler);
        EXPECT_EQ(first.status, 404);
        expect_same_answer(first, send(request(key), creating()));
    }
    EXPECT_EQ(effects(), 0);
}

TEST_F(FinishWith, HandlerMayAddHeadersAndNothingElse) {
    operation.location = "/api/v1/orders/{resource_id}";
    const Response response = send(request(new_key()), [](const Request&, Context& context) {
        Response answer =
            context
                .finish_with("SELECT 201, '{\"b\": 1, \"a\": 2}'::jsonb, '01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa'::uuid")
                .value();
        answer.headers.set("X-Mine", "yes");
        answer.status = 500;
        return answer;
    });
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(header(response, "X-Mine"), "yes");
    EXPECT_EQ(header(response, "Location"), "/api/v1/orders/01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa");
    EXPECT_EQ(response.body, R"({"a": 2, "b": 1})");
}

TEST_F(FinishWith, WorksWithoutAKey) {
    EXPECT_EQ(send(request(""), finishing()).status, 201);
    EXPECT_EQ(effects(), 1);
}

TEST_F(CutConnection, AtEveryMessageOfAKeyedWriteThereIsOneEffectAndTheRightAnswer) {
    for (const Handler& handler : {creating(), finishing()}) {
        for (const bool deferred : {false, true}) {
            operation.deferred = deferred;
            for (const Proxy::Direction direction : {Proxy::Direction::to_server, Proxy::Direction::to_client}) {
                for (int message = 1;; ++message) {
                    database.value("DELETE FROM effects; DELETE FROM idempotency_keys");
                    ASSERT_EQ(send(request(new_key()), handler).status, 201);  // a connection that is ready
                    database.value("DELETE FROM effects; DELETE FROM idempotency_keys");
                    const std::string key = new_key();
                    proxy.cut_at(direction, message);
                    const Response first = send(request(key), handler);
                    ASSERT_EQ(first.status, 201) << message << ' ' << first.body;
                    ASSERT_EQ(effects(), 1) << message;
                    const bool cut = proxy.cut();
                    proxy.cut_at(direction, 0);
                    const Response repeat = send(request(key), handler);
                    ASSERT_TRUE(is_replay(repeat));
                    ASSERT_EQ(repeat.body, first.body) << message;
                    ASSERT_EQ(effects(), 1) << message;
                    if (!cut) {
                        EXPECT_GT(message, 5);
                        break;  // the write has fewer messages
                    }
                }
            }
        }
    }
}

TEST_F(CutConnection, ACommitInDoubtIsResolvedAndReported) {
    // The answer to COMMIT is cut off: the last three messages are COMMIT's completion and ReadyForQuery.
    bool committed_seen = false;
    for (int message = 1; message < 40; ++message) {
        const std::string key = new_key();
        proxy.cut_at(Proxy::Direction::to_client, message);
        send(request(key), creating());
        proxy.cut_at(Proxy::Direction::to_client, 0);
    }
    for (const std::string& event : observer.events()) {
        committed_seen = committed_seen || event == "in_doubt committed";
    }
    EXPECT_TRUE(committed_seen);
    EXPECT_EQ(effects(), 39);
}
