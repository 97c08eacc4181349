#include "measure/simulate/simulate_proof_report.hpp"

#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace speedo {
namespace {

using Json = nlohmann::ordered_json;

Json violation_of(const sim::CampaignFinding& found, const std::string& replay) {
  return {{"seed", found.scenario.seed},
          {"strategy", found.scenario.strategy},
          {"workers", found.scenario.workers},
          {"event", found.result.events},
          {"check", found.result.check},
          {"violation", found.result.violation},
          {"replay", replay + " " + std::to_string(found.scenario.seed)}};
}

}  // namespace

std::string to_table(const sim::FaultTable& faults) {
  std::string text =
      fmt::format("{:<24}{:>10}{:>10}{:>10}\n", "fault", "drawn", "struck", "effect");
  for (std::size_t i = 0; i < faults.size(); ++i) {
    text += fmt::format("{:<24}{:>10}{:>10}{:>10}\n", to_string(static_cast<sim::FaultKind>(i)),
                        faults[i].drawn, faults[i].strikes, faults[i].effects);
  }
  return text;
}

std::string to_json(const sim::CampaignResult& result, const std::string& replay) {
  Json object;
  object["seeds"] = result.seeds;
  object["events"] = result.events;
  object["merges"] = result.merges.all;
  object["merges_ahead"] = result.merges.ahead;
  object["merges_in_memory"] = result.merges.in_memory;
  object["merges_coded"] = result.merges.coded;
  object["merges_replicated"] = result.merges.replicated;
  object["merges_in_parts"] = result.merges.in_parts;
  object["parts_merged_by_shards"] = result.merges.by_shards;
  object["merges_put_off"] = result.merges.put_off;
  object["faults"] = Json::array();
  for (std::size_t i = 0; i < result.faults.size(); ++i) {
    const sim::FaultCount& count = result.faults[i];
    object["faults"].push_back({{"fault", to_string(static_cast<sim::FaultKind>(i))},
                                {"drawn", count.drawn},
                                {"struck", count.strikes},
                                {"effects", count.effects}});
  }
  object["without_effect"] = Json::array();
  for (const sim::FaultKind kind : idle_kinds(result.faults, result.in_parts)) {
    object["without_effect"].push_back(to_string(kind));
  }
  object["violations"] = Json::array();
  for (const sim::CampaignFinding& found : result.violations) {
    object["violations"].push_back(violation_of(found, replay));
  }
  return json_text(object);
}

int exit_code_of(const sim::CampaignResult& result) {
  return result.violations.empty() && idle_kinds(result.faults, result.in_parts).empty() ? 0 : 1;
}

}  // namespace speedo
