#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/proof/proof_run.hpp"

namespace speedo::sim {

// Many simulated trainings, a seed each.
struct Campaign {
  std::vector<std::string> names;       // of scenario_names()
  WorkerCounts workers;
  std::uint64_t first_seed = 1, last_seed = 1;  // both included
  std::uint64_t repeat_every = 1;  // seeds that this divides are simulated twice; 0: none
  int threads = 1;
  bool in_parts = true;  // see draw_scenario()
};

struct CampaignFinding {
  Scenario scenario;
  ProofResult result;
};

struct CampaignResult {
  std::uint64_t seeds = 0, events = 0;
  bool in_parts = false;                    // any of the jobs were to be merged in parts
  MergeCounts merges;
  FaultTable faults{};                      // of all seeds; see idle_kinds()
  std::vector<CampaignFinding> violations;  // in the order of seeds
};

// `on_seed`, if given, is shown behind each seed what there is so far, violations in the order in
// which they were found, on any thread, one at a time; `stop` is asked between seeds.
CampaignResult run_campaign(const Campaign& campaign, const ProofParts& parts,
                            const std::function<void(const CampaignResult&)>& on_seed = {},
                            const std::function<bool()>& stop = {});

// One seed, twice: it must go the same way.
ProofResult prove(const Scenario& scenario, const ProofParts& parts);

}  // namespace speedo::sim
