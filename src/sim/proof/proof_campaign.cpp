#include "sim/proof/proof_campaign.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "sim/check/violations.hpp"

namespace speedo::sim {

MergeCounts& MergeCounts::operator+=(const MergeCounts& other) {
  all += other.all;
  ahead += other.ahead;
  in_memory += other.in_memory;
  replicated += other.replicated;
  coded += other.coded;
  in_parts += other.in_parts;
  by_shards += other.by_shards;
  put_off += other.put_off;
  unseen += other.unseen;
  return *this;
}

ProofResult prove(const Scenario& scenario, const ProofParts& parts) {
  ProofResult first = run_proof(scenario, parts);
  ProofParts quiet = parts;
  quiet.trace = {};
  const ProofResult second = run_proof(scenario, quiet);
  const bool same = first.hash == second.hash && first.faults == second.faults;
  if (first.violation.empty() && !same) {
    first.check = to_string(Check::kRepeatable);
    first.violation = "the same seed went another way the second time";
  }
  first.events += second.events;
  return first;
}

CampaignResult run_campaign(const Campaign& campaign, const ProofParts& parts,
                            const std::function<void(const CampaignResult&)>& on_seed,
                            const std::function<bool()>& stop) {
  CampaignResult all;
  std::atomic<std::uint64_t> next{0};
  const std::uint64_t count = campaign.last_seed - campaign.first_seed + 1;
  std::mutex mutex;
  const auto work = [&] {
    while (!stop || !stop()) {
      const std::uint64_t index = next.fetch_add(1);
      if (index >= count) return;
      const std::uint64_t seed = campaign.first_seed + index;
      Scenario scenario =
          draw_scenario(seed, campaign.names, campaign.workers, campaign.in_parts);
      const bool repeats = campaign.repeat_every > 0 && seed % campaign.repeat_every == 0;
      ProofResult result = repeats ? prove(scenario, parts) : run_proof(scenario, parts);
      const std::lock_guard lock(mutex);
      all.seeds += 1;
      all.in_parts = all.in_parts || !scenario.has_shard.empty();
      all.events += result.events;
      all.merges += result.merges;
      add(result.faults, all.faults);
      if (!result.violation.empty()) {
        all.violations.push_back({std::move(scenario), std::move(result)});
      }
      if (on_seed) on_seed(all);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < campaign.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::ranges::sort(all.violations, {},
                    [](const CampaignFinding& each) { return each.scenario.seed; });
  return all;
}

}  // namespace speedo::sim
