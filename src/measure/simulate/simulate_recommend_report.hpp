#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/recommend.hpp"

namespace speedo {

struct RecommendReport {
  sim::ClusterCosts cluster;
  sim::RecommendOptions options;
  sim::Recommendation found;  // at least one choice
};

// What is recommended: the best of those that learn alike, or of the others if there is none.
const sim::Choice& recommended(const RecommendReport& report);

// What to start for a choice, a line each, with the machines' names for their addresses.
std::vector<std::string> commands_for(const sim::ClusterCosts& cluster,
                                      const sim::Candidate& candidate);
// What of the net is to be changed for it.
std::vector<std::string> net_lines(const sim::ClusterCosts& cluster,
                                   const sim::Candidate& candidate);
// Three sentences: what bounds the runner-up, what the choice saves, what was assumed.
std::vector<std::string> reasons_of(const RecommendReport& report);

// One line: how many are planned, and the best of them.
std::string progress_line(const sim::RecommendProgress& progress);
std::string to_json(const RecommendReport& report);
std::string to_text(const RecommendReport& report);

}  // namespace speedo
