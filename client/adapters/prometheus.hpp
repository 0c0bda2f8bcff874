// The stage's events as metrics of prometheus-cpp.
// Used by applications: give it to StageOptions::observer, and serve the registry's text on /metrics.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

#include "idempotency/observer.hpp"

namespace idempotency {

/// Counts every event. Derive from it to log as well; call the base's method then. Safe to call from several threads.
///
/// Metrics, all with the label `action`:
/// - idempotency_claims_total: `outcome` is started, replayed, reused, in_progress or expired;
/// - idempotency_claim_seconds: how long idempotency_begin took, the wait for a first request included;
/// - idempotency_answers_total: answers of handlers, by `status` and whether they were `stored`;
/// - idempotency_retries_total: new attempts, by `sqlstate`;
/// - idempotency_commits_in_doubt_total: `committed` says what beginning again told;
/// - idempotency_failures_total: `kind` is unstorable or failed.
class PrometheusObserver : public Observer {
public:
    /// @param registry must outlive the observer; may hold metrics of others
    explicit PrometheusObserver(prometheus::Registry& registry)
        : claims_(counter(registry, "idempotency_claims_total", "Outcomes of keyed requests.")),
          claim_seconds_(prometheus::BuildHistogram()
                             .Name("idempotency_claim_seconds")
                             .Help("Duration of idempotency_begin, the wait for a first request included.")
                             .Register(registry)),
          answers_(counter(registry, "idempotency_answers_total", "Answers of handlers to keyed requests.")),
          retries_(counter(registry, "idempotency_retries_total", "New attempts after an error of the database.")),
          in_doubt_(counter(registry, "idempotency_commits_in_doubt_total", "Connections lost during COMMIT.")),
          failures_(counter(registry, "idempotency_failures_total", "Keyed requests that could not be answered.")) {}

    void waited(std::string_view action, std::chrono::nanoseconds duration) noexcept override {
        static const prometheus::Histogram::BucketBoundaries seconds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                                     0.1,    0.25,  0.5,    1,     2.5,  5,     10};
        claim_seconds_.Add({{"action", std::string(action)}}, seconds)
            .Observe(std::chrono::duration<double>(duration).count());
    }
    void started(std::string_view action) noexcept override { claimed(action, "started"); }
    void replayed(std::string_view action, int) noexcept override { claimed(action, "replayed"); }
    void reused(std::string_view action) noexcept override { claimed(action, "reused"); }
    void in_progress(std::string_view action) noexcept override { claimed(action, "in_progress"); }
    void expired(std::string_view action) noexcept override { claimed(action, "expired"); }
    void stored(std::string_view action, int status) noexcept override { answered(action, status, "true"); }
    void not_stored(std::string_view action, int status) noexcept override { answered(action, status, "false"); }
    void retried(std::string_view action, std::string_view sqlstate) noexcept override {
        count(retries_, action, {{"sqlstate", std::string(sqlstate)}});
    }
    void in_doubt(std::string_view action, bool had_committed) noexcept override {
        count(in_doubt_, action, {{"committed", had_committed ? "true" : "false"}});
    }
    void unstorable(std::string_view action, std::string_view) noexcept override {
        count(failures_, action, {{"kind", "unstorable"}});
    }
    void failed(std::string_view action, std::string_view) noexcept override {
        count(failures_, action, {{"kind", "failed"}});
    }

private:
    using Counters = prometheus::Family<prometheus::Counter>;

    static Counters& counter(prometheus::Registry& registry, const char* name, const char* help) {
        return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
    }
    static void count(Counters& counters, std::string_view action, prometheus::Labels labels) {
        labels.emplace("action", action);
        counters.Add(labels).Increment();
    }
    void claimed(std::string_view action, const char* outcome) { count(claims_, action, {{"outcome", outcome}}); }
    void answered(std::string_view action, int status, const char* stored) {
        count(answers_, action, {{"status", std::to_string(status)}, {"stored", stored}});
    }

    Counters& claims_;
    prometheus::Family<prometheus::Histogram>& claim_seconds_;
    Counters& answers_;
    Counters& retries_;
    Counters& in_doubt_;
    Counters& failures_;
};

}  // namespace idempotency
