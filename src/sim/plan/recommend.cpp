#include "sim/plan/recommend.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/plan/plan_ahead.hpp"

namespace speedo::sim {
namespace {

// Of those that learn alike, so many are told of; of each other schedule the best, or more where
// there are only others.
constexpr std::size_t kAlikeListed = 5, kOthersListed = 1, kOthersAloneListed = 3;

struct Bounded {
  const Candidate* candidate = nullptr;
  double bound = 0.0;  // images a second
};

double images_of(const Choice& choice) { return choice.result.images_per_second; }

bool is_better(const Choice& a, const Choice& b) { return images_of(a) > images_of(b); }

// The best `listed` of some candidates, the best first.
class Search {
 public:
  Search(const ClusterCosts& cluster, const RecommendOptions& options, std::size_t possible,
         bool prunes)
      : cluster_(cluster), options_(options), possible_(possible), prunes_(prunes) {}

  Result<std::vector<Choice>> best_of(std::vector<Bounded> candidates, std::size_t listed) {
    std::ranges::stable_sort(candidates, std::ranges::greater{}, &Bounded::bound);
    std::vector<Choice> best;
    PlanAhead plans(candidates.size(), options_.threads,
                    [&](std::size_t number, const std::stop_token& stop) {
                      return plan_candidate(cluster_, *candidates[number].candidate, options_,
                                            stop);
                    });
    for (const Bounded& each : candidates) {
      const bool is_full = best.size() >= listed;
      const double worth = is_full ? images_of(best.back()) * (1.0 + kWorthPlanning) : 0.0;
      if (prunes_ && is_full && each.bound <= worth) break;
      SPEEDO_ASSIGN(PlanResult result, plans.take());
      planned_ += 1;
      Choice choice{*each.candidate, std::move(result)};
      tell(choice);
      best.insert(std::ranges::upper_bound(best, choice, is_better), std::move(choice));
      if (best.size() > listed) best.pop_back();
    }
    return best;
  }
  std::size_t planned() const { return planned_; }

 private:
  void tell(const Choice& planned) {
    if (!options_.on_planned) return;
    if (!best_ || is_better(planned, *best_)) best_ = planned;
    options_.on_planned({planned_, possible_, &*best_});
  }

  const ClusterCosts& cluster_;
  const RecommendOptions& options_;
  const std::size_t possible_;
  const bool prunes_;
  std::optional<Choice> best_;  // that was told of
  std::size_t planned_ = 0;
};

// A codec that loses something makes another schedule of the same name.
std::string family_of(const Candidate& candidate) {
  return candidate.schedule.label + (candidate.codec == "none" ? "" : ", lossy");
}

Result<Recommendation> search(const ClusterCosts& cluster, const RecommendOptions& options,
                              bool prunes) {
  SPEEDO_ASSIGN(const std::vector<Candidate> all, candidates_of(cluster, options.space));
  std::vector<Bounded> alike;
  std::map<std::string, std::vector<Bounded>> families;
  for (const Candidate& candidate : all) {
    const double bound = prunes ? images_bound(cluster, candidate) : 0.0;
    (learns_alike(candidate) ? alike : families[family_of(candidate)])
        .push_back({&candidate, bound});
  }
  Search found(cluster, options, all.size(), prunes);
  Recommendation recommendation;
  recommendation.possible = all.size();
  SPEEDO_ASSIGN(recommendation.alike, found.best_of(std::move(alike), kAlikeListed));
  const std::size_t listed = recommendation.alike.empty() ? kOthersAloneListed : kOthersListed;
  for (auto& [name, candidates] : families) {
    SPEEDO_ASSIGN(const std::vector<Choice> best, found.best_of(std::move(candidates), listed));
    recommendation.others.insert(recommendation.others.end(), best.begin(), best.end());
  }
  std::ranges::stable_sort(recommendation.others, is_better);
  recommendation.planned = found.planned();
  return recommendation;
}

}  // namespace

Result<Recommendation> recommend(const ClusterCosts& cluster, const RecommendOptions& options) {
  return search(cluster, options, true);
}

Result<Recommendation> recommend_exhaustively(const ClusterCosts& cluster,
                                              const RecommendOptions& options) {
  return search(cluster, options, false);
}

Result<PlanResult> plan_candidate(const ClusterCosts& cluster, const Candidate& candidate,
                                  const RecommendOptions& options,
                                  const std::stop_token& stop) {
  PlanOptions plan_options;
  plan_options.stop = stop;
  SPEEDO_ASSIGN(plan_options.schedule, schedule_for(candidate));
  plan_options.workers = candidate.workers;
  const bool in_rounds = find_strategy(candidate.schedule.strategy.name)->rounds;
  plan_options.iterations = options.rounds * (in_rounds ? 1 : candidate.workers);
  plan_options.seed = options.seed;
  return plan(cluster_for(cluster, candidate), plan_options);
}

}  // namespace speedo::sim
