// What goes wrong, on purpose: the servers of the crash suite and the ways to kill them.
// Used by main.cpp.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "orders_fixture.hpp"
#include "outbox.hpp"
#include "postgres.hpp"
#include "proxy.hpp"

namespace crash {

enum class Fault { cut_to_server, cut_to_client, backend, orders_server, postgres_quit, postgres_kill, promotion };

inline constexpr std::array fault_names{
    "connection cut on the way to PostgreSQL",
    "connection cut on the way from PostgreSQL",
    "backend killed (SIGKILL)",
    "orders server killed (SIGKILL)",
    "PostgreSQL killed (SIGQUIT, immediate)",
    "PostgreSQL killed (SIGKILL of the postmaster)",
    "primary killed, standby promoted",
};

/// PostgreSQL, the proxy in front of it, and the orders server that reaches it through the proxy.
class Servers {
public:
    Servers(std::filesystem::path programs, std::filesystem::path cluster, Traffic& traffic, Verdict& verdict);

    [[nodiscard]] const Postgres& primary() const noexcept { return *primary_; }
    [[nodiscard]] std::string url() const { return orders_->url(); }

    void suffer(Fault fault, std::mt19937_64& chance);
    /// For the faults that end with a promotion.
    void make_standby();
    [[nodiscard]] const std::array<long, fault_names.size()>& suffered() const noexcept { return suffered_; }

private:
    void cut(Proxy::Direction direction, std::mt19937_64& chance);
    void restart_orders();
    void promote(std::mt19937_64& chance);

    std::filesystem::path programs_;
    std::filesystem::path cluster_;
    Traffic& traffic_;
    Verdict& verdict_;
    std::unique_ptr<Postgres> primary_;
    std::unique_ptr<Postgres> standby_;
    Proxy proxy_;
    std::unique_ptr<OrdersServer> orders_;
    std::array<long, fault_names.size()> suffered_{};
    int standbys_ = 0;
};

}  // namespace crash
