#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include <speedo/base/result.hpp>

#include "sim/plan/plan.hpp"
#include "sim/plan/recommend_space.hpp"

namespace speedo::sim {

// A candidate and what it does.
struct Choice {
  Candidate candidate;
  PlanResult result;
};

struct Recommendation {
  // The best by images a second, the first one is it. `alike`: each update is that of one worker
  // with the batch of all. `others`: of each other schedule the best with and
  // without a codec: what they learn of an image differs, so images a second do not compare them
  // with those, nor with each other.
  std::vector<Choice> alike, others;
  std::size_t planned = 0, possible = 0;  // candidates
};

// Candidates whose bound exceeds the last one listed by no more than this part of it are not
// planned.
inline constexpr double kWorthPlanning = 0.001;

// How far the search is.
struct RecommendProgress {
  std::size_t planned = 0, possible = 0;  // candidates
  const Choice* best = nullptr;           // of those planned, by images a second
};

struct RecommendOptions {
  SpaceOptions space;
  std::uint64_t seed = 1;
  std::uint64_t rounds = 12;  // runs of every worker that each plan has
  std::size_t threads = 1;    // that plan; they change nothing in what is found
  std::function<void(const RecommendProgress&)> on_planned = nullptr;  // after each
};

// Finds the best of candidates_of(). Only those are planned that images_bound() lets be among the
// best by more than kWorthPlanning. Same arguments: same result. Errors: those of candidates_of()
// and plan().
Result<Recommendation> recommend(const ClusterCosts& cluster, const RecommendOptions& options);
// The same by planning every candidate.
Result<Recommendation> recommend_exhaustively(const ClusterCosts& cluster,
                                              const RecommendOptions& options);

// One of them. Errors: those of plan().
Result<PlanResult> plan_candidate(const ClusterCosts& cluster, const Candidate& candidate,
                                  const RecommendOptions& options,
                                  const std::stop_token& stop = {});

}  // namespace speedo::sim
