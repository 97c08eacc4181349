// proof_runner SEEDS [FIRST]: simulates so many trainings of all schedules, and prints of each
// violation the check that found it, the seed and what was found, with tabs between them.

#include <cstdio>
#include <optional>

#include "base/parse_number.hpp"

#include "proof_support.hpp"

int main(int count, char** arguments) {
  using speedo::parse_number;
  const auto seeds = count > 1 ? parse_number<std::uint64_t>(arguments[1]) : std::nullopt;
  const auto first = count > 2 ? parse_number<std::uint64_t>(arguments[2]) : std::optional{1UL};
  if (!seeds || *seeds == 0 || !first) {
    std::fprintf(stderr, "usage: proof_runner SEEDS [FIRST]\n");
    return 2;
  }
  speedo::sim::Campaign campaign;
  campaign.names = speedo::sim::scenario_names();
  campaign.first_seed = *first;
  campaign.last_seed = *first + *seeds - 1;
  campaign.threads = 2;
  const auto result = speedo::sim::run_campaign(campaign, speedo::sim::real_parts());
  for (const speedo::sim::CampaignFinding& found : result.violations) {
    std::printf("%s\t%llu\t%s\n", found.result.check.c_str(),
                static_cast<unsigned long long>(found.scenario.seed),
                found.result.violation.c_str());
  }
  return 0;
}
