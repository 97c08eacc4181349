#include "measure/simulate/simulate_proof_report.hpp"

#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace speedo {
namespace {

sim::CampaignResult result_of_each_kind() {
  sim::CampaignResult result;
  result.seeds = 2000;
  for (std::size_t i = 0; i < result.faults.size(); ++i) {
    result.faults[i] = {1000 + i, 500 + i, 100 + i};
  }
  return result;
}

}  // namespace

TEST_CASE("The table has a line for every kind of fault") {
  const std::string table = to_table(result_of_each_kind().faults);
  std::istringstream lines(table);
  std::string line;
  REQUIRE(std::getline(lines, line));
  for (int i = 0; i < sim::kFaultKinds; ++i) {
    REQUIRE(std::getline(lines, line));
    const std::string kind = to_string(static_cast<sim::FaultKind>(i));
    REQUIRE(line.starts_with(kind + ' '));
    std::istringstream numbers(line.substr(kind.size()));
    int drawn = 0, struck = 0, effects = 0;
    numbers >> drawn >> struck >> effects;
    CHECK(drawn == 1000 + i);
    CHECK(struck == 500 + i);
    CHECK(effects == 100 + i);
  }
  CHECK_FALSE(std::getline(lines, line));
}

TEST_CASE("The same as JSON, with what had no effect and how to see a violation again") {
  sim::CampaignResult result = result_of_each_kind();
  result.faults[static_cast<std::size_t>(sim::FaultKind::kDamageContribution)].effects = 0;
  result.violations.emplace_back();
  result.violations.back().scenario.seed = 7;
  result.violations.back().result.check = "once";
  result.violations.back().result.violation = "a \"shard\" is lost";
  const auto json = nlohmann::json::parse(to_json(result, "speedo simulate --replay"));
  CHECK(json.at("seeds") == 2000);
  REQUIRE(json.at("faults").size() == sim::kFaultKinds);
  CHECK(json.at("faults").at(0).at("fault") == "kill worker");
  CHECK(json.at("faults").at(0).at("drawn") == 1000);
  CHECK(json.at("faults").at(0).at("struck") == 500);
  CHECK(json.at("faults").at(0).at("effects") == 100);
  REQUIRE(json.at("without_effect").size() == 1);
  CHECK(json.at("without_effect").at(0) == "damage contribution");
  REQUIRE(json.at("violations").size() == 1);
  CHECK(json.at("violations").at(0).at("check") == "once");
  CHECK(json.at("violations").at(0).at("violation") == "a \"shard\" is lost");
  CHECK(json.at("violations").at(0).at("replay") == "speedo simulate --replay 7");
}

TEST_CASE("A violation, or a kind of fault that did nothing, is exit code 1") {
  sim::CampaignResult result = result_of_each_kind();
  CHECK(exit_code_of(result) == 0);
  result.faults[static_cast<std::size_t>(sim::FaultKind::kBadStore)].effects = 0;
  CHECK(exit_code_of(result) == 1);
  result = result_of_each_kind();
  result.faults[static_cast<std::size_t>(sim::FaultKind::kBadStore)] = {};
  CHECK(exit_code_of(result) == 1);
  result = result_of_each_kind();
  result.violations.emplace_back();
  CHECK(exit_code_of(result) == 1);
}

}  // namespace speedo
