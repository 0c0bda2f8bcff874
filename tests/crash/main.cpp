// The crash suite: clients with keys, faults while they work, and a comparison of what was told with what is there.
// Run by tests/crash/run: crash_tests PROGRAMS CLUSTER; the environment gives ROUNDS and SEED.
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "checks.hpp"
#include "faults.hpp"
#include "wait_until.hpp"

namespace crash {
namespace {

constexpr int clients_at_a_time = 12;
constexpr int promotion_every = 5;

unsigned long long number_of(const char* name, unsigned long long otherwise) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? std::stoull(value) : otherwise;
}

/// The faults of a round, in an order that seed and round decide. Crashes of the primary and its promotion do not share one: a primary that has crashed shows
/// commits that its standby does not have yet, which is a matter of PostgreSQL's replication and not of keys.
std::vector<Fault> plan(unsigned long long seed, int round) {
    std::seed_seq sequence{seed, seed >> 32, static_cast<unsigned long long>(round)};
    std::mt19937_64 chance(sequence);
    std::vector<Fault> faults{Fault::cut_to_server, Fault::cut_to_server, Fault::cut_to_client, Fault::cut_to_client,
                              Fault::orders_server};
    const bool promotion = round % promotion_every == 0;
    if (!promotion) {
        faults.insert(faults.end(),
                      {Fault::backend, Fault::backend,
                       std::bernoulli_distribution()(chance) ? Fault::postgres_quit : Fault::postgres_kill});
    }
    std::shuffle(faults.begin(), faults.end(), chance);
    if (promotion) {
        faults.insert(faults.end(), {Fault::promotion, Fault::backend, Fault::cut_to_client});
    }
    return faults;
}

class Suite {
public:
    Suite(unsigned long long seed, const char* programs, const char* cluster)
        : seed_(seed), chance_(seed), servers_(programs, cluster, traffic_, verdict_) {}

    void play(int round) {
        const std::vector<Fault> faults = plan(seed_, round);
        if (std::ranges::count(faults, Fault::promotion) > 0) {
            servers_.make_standby();
        }
        // Sessions that are there keep their way of claiming and new ones get the other, so that both are at work side by side.
        (void)servers_.primary().value("ALTER ROLE postgres SET idempotency.claim = " +
                                       std::string(round % 2 == 0 ? "row" : "lock"));
        const std::string principal =
            servers_.primary().value("INSERT INTO principals (id) VALUES (gen_random_uuid()) RETURNING id");
        std::vector<std::unique_ptr<Outbox>> clients;
        for (int i = 0; i < clients_at_a_time; ++i) {
            clients.push_back(std::make_unique<Outbox>(servers_.url(), principal, chance_(), traffic_, verdict_));
        }
        std::atomic<bool> stop{false};
        std::vector<std::jthread> threads;
        for (const auto& client : clients) {
            threads.emplace_back([&client, &stop] { client->work(stop); });
        }
        try {
            for (const Fault fault : faults) {
                let_work();
                servers_.suffer(fault, chance_);
            }
            let_work();
        } catch (...) {
            stop = true;
            throw;
        }
        stop = true;
        threads.clear();
        for (const auto& client : clients) {
            threads.emplace_back([&client] { client->repeat_all(); });
        }
        threads.clear();
        for (const auto& client : clients) {
            keys_ += static_cast<long>(client->operations().size());
            effects_ += std::ranges::count_if(client->operations(), [](const Operation& operation) {
                return operation.first && operation.succeeds();
            });
        }
        check_round(servers_.primary(), principal, clients, verdict_);
        check_everything(servers_.primary(), verdict_);
        if (++rounds_ % 20 == 0) {
            std::cout << "after round " << rounds_ << ": " << kills() << " kills and cuts, " << traffic_.requests
                      << " requests" << std::endl;
        }
    }

    [[nodiscard]] bool clean() const { return verdict_.clean(); }

    void report() const {
        std::cout << rounds_ << " rounds, seed " << seed_ << '\n' << kills() << " kills and cuts\n";
        for (std::size_t i = 0; i < fault_names.size(); ++i) {
            std::cout << "  " << servers_.suffered()[i] << ' ' << fault_names[i] << '\n';
        }
        std::cout << traffic_.requests << " keyed requests, " << keys_ << " keys, " << effects_ << " effects, "
                  << traffic_.replays << " answers compared with the first one, of which " << traffic_.errors_run_anew
                  << " final errors that had not been stored and ran anew\n"
                  << "answers by status:";
        for (std::size_t status = 0; status < traffic_.by_status.size(); ++status) {
            if (traffic_.by_status[status] > 0) {
                std::cout << ' ' << status << ": " << traffic_.by_status[status] << ',';
            }
        }
        std::cout << " none: " << traffic_.unanswered << '\n';
        for (std::size_t claim = 0; claim < claim_names.size(); ++claim) {
            const auto& examples = verdict_.against(claim);
            std::cout << (examples.empty() ? "ok " : "not ok ") << claim_names[claim] << '\n';
            for (std::size_t i = 0; i < std::min<std::size_t>(examples.size(), 5); ++i) {
                std::cout << "  " << examples[i] << '\n';
            }
            if (examples.size() > 5) {
                std::cout << "  and " << examples.size() - 5 << " more\n";
            }
        }
        if (!clean()) {
            std::cout << "The same faults again: make check-crash SEED=" << seed_ << " ROUNDS=" << rounds_ << '\n';
        }
        std::cout << std::flush;
    }

private:
    /// Until some more keys have got their answer: the next fault meets work, and comes at a moment of chance in it. Sometimes not at all:
    /// then it meets the recovery from the last one.
    void let_work() {
        if (std::uniform_int_distribution(1, 5)(chance_) == 1) {
            return;
        }
        const long enough = traffic_.acknowledged + std::uniform_int_distribution(20, 90)(chance_);
        wait_until("answers", [&] { return traffic_.acknowledged >= enough || !verdict_.clean(); });
    }

    [[nodiscard]] long kills() const {
        return std::accumulate(servers_.suffered().begin(), servers_.suffered().end(), 0L);
    }

    unsigned long long seed_;
    std::mt19937_64 chance_;
    Traffic traffic_;
    Verdict verdict_;
    Servers servers_;
    int rounds_ = 0;
    long keys_ = 0;
    long effects_ = 0;
};

}  // namespace
}  // namespace crash

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: crash_tests PROGRAMS CLUSTER\n";
        return 2;
    }
    // What a killed postmaster leaves behind becomes a child of this process.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::filesystem::current_path(argv[2]);  // where the orders server is
    const unsigned long long seed = crash::number_of("SEED", std::random_device{}());
    const unsigned long long rounds = crash::number_of("ROUNDS", 15);
    std::cout << "seed " << seed << ", " << rounds << " rounds" << std::endl;
    try {
        crash::Suite suite(seed, argv[1], argv[2]);
        for (unsigned long long round = 1; round <= rounds && suite.clean(); ++round) {
            suite.play(static_cast<int>(round));
        }
        suite.report();
        return suite.clean() ? 0 : 1;
    } catch (const std::exception& error) {
        std::cout << "not ok the_suite_runs_to_its_end\n  " << error.what() << ", seed " << seed << std::endl;
        return 1;
    }
}
