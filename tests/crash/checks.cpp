// The checks of the crash suite.
// Called by main.cpp.
#include "checks.hpp"

#include <map>
#include <nlohmann/json.hpp>

namespace crash {
namespace {

using nlohmann::json;

/// An order as its row is and as its answers say it should be: article (the key that wrote it) and version.
using Orders = std::map<std::string, std::pair<std::string, int>>;

Orders told(const std::vector<std::unique_ptr<Outbox>>& clients) {
    Orders orders;
    for (const auto& client : clients) {
        for (const Operation& operation : client->operations()) {
            if (!operation.first || operation.first->status != operation.expected) {
                continue;  // counted against another claim
            }
            const std::string id_in_path = operation.path.substr(operation.path.rfind('/') + 1);
            switch (operation.kind) {
                case Operation::Kind::create:
                    orders[json::parse(operation.first->body)["id"]] = {operation.key, 1};
                    break;
                case Operation::Kind::replace:
                    orders[id_in_path] = {operation.key, 2};
                    break;
                case Operation::Kind::remove:
                    orders.erase(id_in_path);
                    break;
                case Operation::Kind::refused:
                    break;
            }
        }
    }
    return orders;
}

Orders stored(const Postgres& server, const std::string& principal) {
    Orders orders;
    for (
        const json& row : json::parse(server.value(
            "SELECT coalesce(jsonb_agg(jsonb_build_array(id, sku, version)), '[]') FROM orders WHERE principal_id = '" +
            principal + "'"))) {
        orders[row[0]] = {row[1], row[2]};
    }
    return orders;
}

void check_orders(const Orders& expected, const Orders& found, Verdict& verdict) {
    std::map<std::string, std::string> by_article;
    for (const auto& [id, order] : found) {
        const auto& [article, version] = order;
        if (const auto other = by_article.emplace(article, id); !other.second) {
            verdict.against(Claim::no_key_has_two_effects,
                            "key " + article + ": orders " + other.first->second + " and " + id);
        } else if (const auto one = expected.find(id); one == expected.end()) {
            verdict.against(Claim::no_effect_is_without_a_completed_key,
                            "order " + id + " of key " + article + ": no answer tells of it");
        } else if (one->second != order) {
            verdict.against(Claim::no_key_has_two_effects, "order " + id + " has version " + std::to_string(version) +
                                                               " by key " + article + ", expected " +
                                                               std::to_string(one->second.second));
        }
    }
    for (const auto& [id, order] : expected) {
        if (!found.contains(id)) {
            verdict.against(Claim::an_acknowledged_key_has_its_effect, "key " + order.first + ": no order " + id);
        }
    }
}

}  // namespace

void check_round(const Postgres& server, const std::string& principal,
                 const std::vector<std::unique_ptr<Outbox>>& clients, Verdict& verdict) {
    check_orders(told(clients), stored(server, principal), verdict);
    const json keys = json::parse(
        server.value("SELECT coalesce(jsonb_object_agg(key, response_status), '{}') FROM idempotency_keys WHERE "
                     "principal_id = '" +
                     principal + "' AND state = 'completed'"));
    for (const auto& client : clients) {
        for (const Operation& operation : client->operations()) {
            if (operation.first && keys.value(operation.key, 0) != operation.first->status) {
                verdict.against(Claim::an_acknowledged_key_is_stored_as_completed, operation.text());
            }
        }
    }
}

void check_everything(const Postgres& server, Verdict& verdict) {
    const auto none = [&](Claim claim, const std::string& rows) {
        if (const std::string found = server.value("SELECT string_agg(key::text, ' ') FROM (" + rows + ") AS found");
            !found.empty()) {
            verdict.against(claim, "keys " + found);
        }
    };
    // A transaction that runs does not show its row: one in progress that can be seen was committed like that.
    none(Claim::no_key_is_left_in_progress, "SELECT key FROM idempotency_keys WHERE state = 'in_progress'");
    none(Claim::no_key_has_two_effects, "SELECT sku AS key FROM orders GROUP BY sku HAVING count(*) > 1");
    none(
        Claim::no_effect_is_without_a_completed_key,
        "SELECT sku AS key FROM orders AS o WHERE NOT EXISTS (SELECT FROM idempotency_keys AS k WHERE k.principal_id = "
        "o.principal_id AND k.key = o.sku::uuid AND k.state = 'completed' AND k.response_status IN (200, 201) AND "
        "k.resource_id = o.id)");
}

}  // namespace crash
