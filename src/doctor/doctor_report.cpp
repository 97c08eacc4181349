#include "doctor/doctor_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace speedo {

namespace {

constexpr std::size_t kCheckColumns = 17;

const char* name_of(Health health) {
  switch (health) {
    case Health::kOk: return "ok";
    case Health::kWarning: return "warning";
    case Health::kProblem: break;
  }
  return "problem";
}

std::ptrdiff_t count_of(const Findings& findings, Health health) {
  return std::ranges::count(findings, health, &Finding::health);
}

}  // namespace

std::string to_text(const Findings& findings) {
  std::string text;
  for (const Finding& each : findings) {
    text += fmt::format("{:<8} {:<{}} {}\n", name_of(each.health), each.check, kCheckColumns,
                        each.what);
    if (!each.remedy.empty()) {
      text += fmt::format("{:<8} {:<{}} -> {}\n", "", "", kCheckColumns, each.remedy);
    }
  }
  const auto problems = count_of(findings, Health::kProblem);
  const auto warnings = count_of(findings, Health::kWarning);
  return text + fmt::format("{} problem{}, {} warning{}, {} ok\n", problems,
                            problems == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s",
                            count_of(findings, Health::kOk));
}

std::string to_json(const Findings& findings) {
  nlohmann::ordered_json report;
  report["problems"] = count_of(findings, Health::kProblem);
  report["warnings"] = count_of(findings, Health::kWarning);
  report["findings"] = nlohmann::ordered_json::array();
  for (const Finding& each : findings) {
    report["findings"].push_back({{"check", each.check},
                                  {"health", name_of(each.health)},
                                  {"what", each.what},
                                  {"remedy", each.remedy}});
  }
  return json_text(report) + "\n";
}

bool has_problem(const Findings& findings) { return count_of(findings, Health::kProblem) > 0; }

}  // namespace speedo
