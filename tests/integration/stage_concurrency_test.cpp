// The stage: repeats that come while the first request runs, and attempts that the database asks to repeat.
// Run by ctest against a real server.
#include "stage_fixture.hpp"

using InProgress = ImpatientStageTest;
using Concurrent = StageTest;
using Retry = ImpatientStageTest;

TEST_F(InProgress, 409AfterLockTimeout) {
    std::promise<void> begun;
    std::promise<void> go_on;
    const std::string key = new_key();
    auto first = std::async(std::launch::async, [&] {
        return send(request(key), [&](const Request& made, Context& context) {
            begun.set_value();
            go_on.get_future().wait();
            return creating()(made, context);
        });
    });
    begun.get_future().wait();
    const Response second = send(request(key), creating());
    EXPECT_EQ(second.status, 409);
    EXPECT_EQ(code(second), "request_in_progress");
    EXPECT_NE(header(second, "Retry-After"), "");
    EXPECT_FALSE(is_replay(second));
    EXPECT_EQ(keys(), 0);
    EXPECT_THAT(observer.waits(), ::testing::ElementsAre(::testing::_, ::testing::Ge(std::chrono::milliseconds(100))));
    go_on.set_value();
    expect_same_answer(first.get(), send(request(key), creating()));
    EXPECT_EQ(effects(), 1);
}

TEST_F(InProgress, AnotherWriterOfTheRowIs409Too) {
    const std::string key = new_key();
    idempotency::UnitOfWork other(pool, {});
    other.run([&](idempotency::Transaction& transaction) {
        transaction.execute(
            "INSERT INTO idempotency_keys (principal_id, key, action, request_sha256, expires_at)"
            " VALUES ($1, $2, 'x', sha256('x'), now() + interval '1 hour')",
            {actor.principal_id, key});
        EXPECT_EQ(code(send(request(key), creating())), "request_in_progress");
    });
    EXPECT_EQ(effects(), 0);
}

TEST_F(Concurrent, AnotherRequestWithTheKeyWaitsAndIsReuse) {
    const std::string key = new_key();
    std::promise<void> begun;
    auto first = std::async(std::launch::async, [&] {
        return send(request(key), [&](const Request& made, Context& context) {
            begun.set_value();
            // Until the other one waits for this one's lock.
            database.wait_until(
                "SELECT count(*) > 0 FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'");
            return creating()(made, context);
        });
    });
    begun.get_future().wait();
    const Response other = send(request(key, R"({"sku":"another"})"), creating());
    EXPECT_EQ(other.status, 422);
    EXPECT_EQ(code(other), "idempotency_key_reuse");
    EXPECT_EQ(first.get().status, 201);
    EXPECT_EQ(effects(), 1);
}

TEST_F(Concurrent, ExactlyOneEffect) {
    const std::string key = new_key();
    std::vector<std::future<Response>> answers;
    for (int i = 0; i < 50; ++i) {
        answers.push_back(std::async(std::launch::async, [&] { return send(request(key), creating()); }));
    }
    int first_answers = 0;
    for (auto& answer : answers) {
        const Response response = answer.get();
        if (is_replay(response)) {
            EXPECT_EQ(response.status, 201);
        } else if (response.status == 201) {
            ++first_answers;
        } else {
            EXPECT_EQ(code(response), "request_in_progress") << response.body;
        }
    }
    EXPECT_EQ(first_answers, 1);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(runs, 1);
}

TEST_F(Concurrent, FinalErrorsAtOnceGiveOneStoredAnswer) {
    const std::string key = new_key();
    std::vector<std::future<Response>> answers;
    for (int i = 0; i < 20; ++i) {
        answers.push_back(std::async(std::launch::async, [&] { return send(request(key), answering(404)); }));
    }
    for (auto& answer : answers) {
        EXPECT_EQ(answer.get().status, 404);
    }
    EXPECT_EQ(keys(), 1);
    EXPECT_EQ(effects(), 0);
}

TEST_F(Concurrent, SlowHandlerThatOutlivesItsKeyHasOneEffect) {
    auto with_ttl = options(std::chrono::milliseconds(0));
    with_ttl.key_ttl = std::chrono::seconds(1);
    const idempotency::Stage short_lived(pool, with_ttl);
    const std::string key = new_key();
    std::promise<void> begun;
    auto first = std::async(std::launch::async, [&] {
        return short_lived.handle(operation, actor, request(key), [&](const Request& made, Context& context) {
            begun.set_value();
            context.transaction().execute("SELECT pg_sleep(1.5)");
            return creating()(made, context);
        });
    });
    begun.get_future().wait();
    const Response repeat = short_lived.handle(operation, actor, request(key), creating());
    expect_same_answer(first.get(), repeat);
    EXPECT_EQ(effects(), 1);
}

TEST_F(Retry, ReinvokesWithFreshBuffer) {
    const std::string key = new_key();
    std::vector<std::string> bodies;
    const Handler handler = [&](const Request& made, Context& context) {
        bodies.push_back(made.body);
        context.transaction().execute("INSERT INTO effects VALUES ('attempt ' || $1)", {context.attempt()});
        Response response = Response::json(201, R"({"attempt":)" + std::to_string(context.attempt()) + "}");
        response.headers.set("X-Attempt-" + std::to_string(context.attempt()), "yes");
        if (context.attempt() == 1) {
            context.transaction().execute("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$");
        }
        return response;
    };
    const Response response = send(request(key), handler);
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(response.body, R"({"attempt": 2})");
    EXPECT_EQ(header(response, "X-Attempt-1"), "");
    EXPECT_EQ(header(response, "X-Attempt-2"), "yes");
    EXPECT_THAT(bodies, ::testing::ElementsAre(R"({"sku":"A-1"})", R"({"sku":"A-1"})"));
    EXPECT_EQ(database.value("SELECT string_agg(note, ',') FROM effects"), "attempt 2");
    EXPECT_THAT(observer.events(), ::testing::ElementsAre("started", "retried 40P01", "started", "stored 201"));
}

TEST_F(Retry, SerializationFailureAtCommitReallyRunsAgain) {
    database.value(R"(
        CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF NEW.note = 'attempt 1' THEN
            RAISE EXCEPTION 'x' USING ERRCODE = '40001';
          END IF;
          RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION fail_once())");
    const Handler handler = [&](const Request&, Context& context) {
        context.transaction().execute("INSERT INTO effects VALUES ('attempt ' || $1)", {context.attempt()});
        return Response::json(200, R"({"attempt":)" + std::to_string(context.attempt()) + "}");
    };
    const std::string key = new_key();
    const Response response = send(request(key), handler);
    EXPECT_EQ(response.body, R"({"attempt": 2})");
    EXPECT_EQ(database.value("SELECT string_agg(note, ',') FROM effects"), "attempt 2");
    expect_same_answer(response, send(request(key), handler));
}

TEST_F(Retry, EndsAfterTxRetryMaxWith503) {
    for (const char* sqlstate : {"40001", "40P01", "55P03"}) {
        runs = 0;
        const std::string key = new_key();
        const Response response = send(request(key), [&](const Request&, Context& context) {
            ++runs;
            context.transaction().execute("INSERT INTO effects VALUES ('never')");
            context.transaction().execute("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '" + std::string(sqlstate) +
                                          "'; END $$");
            return Response::json(200, "{}");
        });
        EXPECT_EQ(response.status, 503) << sqlstate;
        EXPECT_EQ(code(response), "service_unavailable");
        EXPECT_NE(header(response, "Retry-After"), "");
        EXPECT_EQ(runs, 4);
        EXPECT_EQ(keys(), 0);
        EXPECT_EQ(effects(), 0);
        EXPECT_EQ(send(request(key), creating()).status, 201);
        database.value("DELETE FROM idempotency_keys; DELETE FROM effects");
    }
}

TEST_F(Retry, LockTimeoutOfTheHandlersOwnStatementIsNeverRequestInProgress) {
    idempotency::UnitOfWork other(pool, {});
    database.value("INSERT INTO effects VALUES ('locked')");
    other.run([&](idempotency::Transaction& transaction) {
        transaction.execute("SELECT * FROM effects FOR UPDATE");
        const Response response = send(request(new_key()), [&](const Request&, Context& context) {
            context.transaction().execute("UPDATE effects SET note = 'mine'");
            return Response::json(200, "{}");
        });
        EXPECT_EQ(response.status, 503);
        EXPECT_EQ(code(response), "service_unavailable");
    });
    EXPECT_THAT(observer.events(), ::testing::Contains("retried 55P03").Times(3));
}

TEST_F(Retry, PrincipalLockedByAnotherTransactionIsRetriedNotInProgress) {
    idempotency::UnitOfWork other(pool, {});
    other.run([&](idempotency::Transaction& transaction) {
        transaction.execute("SELECT * FROM principals FOR UPDATE");
        EXPECT_EQ(code(send(request(new_key()), creating())), "service_unavailable");
    });
    EXPECT_EQ(effects(), 0);
}

TEST_F(Retry, HandlerThatSwallowsADeadlockRunsAgain) {
    const Response response = send(request(new_key()), [&](const Request& made, Context& context) {
        if (context.attempt() == 1) {
            try {
                context.transaction().execute("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$");
            } catch (const idempotency::Error&) {
                return Response::json(201, "{}");
            }
        }
        return creating()(made, context);
    });
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(effects(), 1);
}

TEST_F(Retry, HandlerMayRecoverWithASavepoint) {
    const Response response = send(request(new_key()), [&](const Request& made, Context& context) {
        context.transaction().execute("SAVEPOINT attempt");
        try {
            context.transaction().execute("SELECT 1 / 0");
        } catch (const idempotency::Error& error) {
            EXPECT_EQ(error.sqlstate(), "22012");
            context.transaction().execute("ROLLBACK TO SAVEPOINT attempt");
        }
        return creating()(made, context);
    });
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(effects(), 1);
}

TEST_F(Retry, UnexpectedDatabaseErrorOfTheHandlerIs500) {
    const Response response = send(request(new_key()), [&](const Request&, Context& context) {
        context.transaction().execute("SELECT * FROM no_such_table");
        return Response::json(200, "{}");
    });
    EXPECT_EQ(response.status, 500);
    EXPECT_THAT(response.body, ::testing::Not(::testing::HasSubstr("no_such_table")));
    EXPECT_EQ(keys(), 0);
}

TEST_F(Retry, BackendKilledInTheMiddleOfTheHandlerRunsAgainAtOnce) {
    const std::string key = new_key();
    const Response response = send(request(key), [&](const Request& made, Context& context) {
        Response answer = creating()(made, context);
        if (context.attempt() == 1) {
            const auto pid = std::string(context.transaction().execute("SELECT pg_backend_pid()").get(0, 0).value());
            database.value("SELECT pg_terminate_backend(" + pid + ", 10000)");
        }
        return answer;
    });
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(effects(), 1);
    EXPECT_EQ(runs, 2);
    expect_same_answer(response, send(request(key), creating()));
}

TEST_F(Retry, InteropWithTheApplicationsOwnLibpqCalls) {
    const Response response = send(request(new_key()), [&](const Request& made, Context& context) {
        EXPECT_NE(context.transaction().native_handle(), nullptr);
        return creating()(made, context);
    });
    EXPECT_EQ(response.status, 201);
}
