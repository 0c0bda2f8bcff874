// Compares what the clients were told with what the database holds.
// Called by main.cpp after every round.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "outbox.hpp"
#include "postgres.hpp"
#include "verdict.hpp"

namespace crash {

/// The keys and orders of one round, which has a principal of its own.
void check_round(const Postgres& server, const std::string& principal,
                 const std::vector<std::unique_ptr<Outbox>>& clients, Verdict& verdict);

/// What holds for all rows of all rounds.
void check_everything(const Postgres& server, Verdict& verdict);

}  // namespace crash
