// The faults of the crash suite.
// Called by main.cpp.
#include "faults.hpp"

#include <signal.h>

#include "wait_until.hpp"

namespace crash {
namespace {

/// Repeats wait shortly for a first request, so that some are told that it still runs.
const std::vector<std::string> orders_options{"--demo", "--threads", "32", "--lock-timeout-ms", "50"};

}  // namespace

Servers::Servers(std::filesystem::path programs, std::filesystem::path cluster, Traffic& traffic, Verdict& verdict)
    : programs_(std::move(programs)),
      cluster_(std::move(cluster)),
      traffic_(traffic),
      verdict_(verdict),
      primary_(std::make_unique<Postgres>(programs_, cluster_, cluster_ / "log")),
      proxy_(primary_->conninfo()),
      orders_(std::make_unique<OrdersServer>(proxy_.conninfo(), orders_options)) {}

void Servers::suffer(Fault fault, std::mt19937_64& chance) {
    switch (fault) {
        case Fault::cut_to_server:
            cut(Proxy::Direction::to_server, chance);
            break;
        case Fault::cut_to_client:
            cut(Proxy::Direction::to_client, chance);
            break;
        case Fault::backend:
            primary_->kill_backend(chance);
            break;
        case Fault::orders_server:
            restart_orders();
            break;
        case Fault::postgres_quit:
        case Fault::postgres_kill:
            primary_->kill_all(fault == Fault::postgres_quit ? SIGQUIT : SIGKILL);
            primary_->start();
            break;
        case Fault::promotion:
            promote(chance);
            break;
    }
    ++suffered_[static_cast<std::size_t>(fault)];
}

void Servers::make_standby() {
    standby_ = primary_->make_standby(cluster_ / ("standby" + std::to_string(++standbys_)));
}

void Servers::cut(Proxy::Direction direction, std::mt19937_64& chance) {
    proxy_.cut_at(direction, std::uniform_int_distribution(1, 60)(chance));
    wait_until("the cut", [&] { return proxy_.cut(); });
}

void Servers::restart_orders() {
    orders_->signal(SIGKILL);
    if (const int status = orders_->wait(); status != 128 + SIGKILL) {
        verdict_.against(Claim::no_process_crashes_by_itself,
                         "the orders server had ended with status " + std::to_string(status));
    }
    orders_ = std::make_unique<OrdersServer>(proxy_.conninfo(), orders_options, orders_->port());
}

/// The old primary ends with all of its processes before the standby is promoted, so there is never more than one that writes.
void Servers::promote(std::mt19937_64& chance) {
    primary_->kill_all(std::bernoulli_distribution()(chance) ? SIGQUIT : SIGKILL);
    standby_->promote();
    proxy_.lead_to(standby_->conninfo());
    primary_ = std::move(standby_);
}

}  // namespace crash
