#include "measure/simulate/simulate_recommend_report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <speedo/base/assert.hpp>

#include "base/json_text.hpp"
#include "measure/text_columns.hpp"
#include "sim/plan/cost_exchange.hpp"
#include "train/note_text.hpp"

namespace speedo {

using sim::Candidate;
using sim::Choice;
using sim::ClusterCosts;
using sim::Contributes;

namespace {

using Json = nlohmann::ordered_json;

// Whoever merges waits for links and servers meanwhile: only if nothing else is nearly as busy, it
// is what holds the others up.
constexpr double kMergerLead = 0.1;

struct Bottleneck {
  std::string what;
  double busy = 0.0;
};

Bottleneck bottleneck_of(const sim::PlanResult& result) {
  Bottleneck most{"its workers' computing", result.computing};
  if (result.link_busy > most.busy) most = {"the link of " + result.link_host, result.link_busy};
  if (result.store_busy > most.busy) most = {"the store's thread", result.store_busy};
  if (result.master_busy > most.busy + kMergerLead) {
    const bool merges = result.master_busy > result.messages_busy;
    most = {merges ? "the merger" : "the master's messages", result.master_busy};
  }
  return most;
}

std::string schedule_of(const Candidate& candidate) {
  std::string text = candidate.schedule.label;
  if (candidate.contributes == Contributes::kGradients) text += " by gradients";
  if (candidate.contributes == Contributes::kReplicated) text += " replicated";
  return text;
}

std::uint64_t machines_in(const Candidate& candidate) {
  return std::accumulate(candidate.machines.begin(), candidate.machines.end(), std::uint64_t{0});
}

std::string label_of(const Candidate& candidate) {
  std::string text = schedule_of(candidate);
  text += ", " + count_workers(candidate.workers);
  if (const std::uint64_t machines = machines_in(candidate); machines > 0) {
    text += fmt::format(" on {} machine{}", machines, machines == 1 ? "" : "s");
  }
  text += candidate.shards == 0 ? ", no shards" : fmt::format(", {} shards", candidate.shards);
  if (candidate.codec != "none") text += ", " + candidate.codec;
  return text + fmt::format(", batch {}", candidate.batch);
}

// How what is learnt of an image differs from one worker with the batch of all.
std::string note_of(const Choice& choice) {
  if (sim::learns_alike(choice.candidate)) return "alike";
  std::vector<std::string> notes;
  if (choice.result.staleness >= 0.005) {
    notes.push_back(fmt::format("stale by {:.1f}", choice.result.staleness));
  }
  const auto schedule = sim::schedule_for(choice.candidate);
  if (schedule && is_elastic(schedule->update.kind)) notes.emplace_back("weights of their own");
  if (schedule && averages_histories(schedule->update)) notes.emplace_back("averaged models");
  if (schedule && schedule->update.steps_per_run > 1) {
    notes.push_back(fmt::format("every {} mini-batches", schedule->update.steps_per_run));
  }
  if (choice.candidate.codec != "none") notes.emplace_back("lossy codec");
  return fmt::format("{}", fmt::join(notes, ", "));
}

const Choice* runner_up(const sim::Recommendation& found) {
  if (found.alike.size() > 1) return &found.alike[1];
  const std::size_t next = found.alike.empty() ? 1 : 0;
  return found.others.size() > next ? &found.others[next] : nullptr;
}

std::string share_text(double part) { return fmt::format("{:.0f} %", part * 100.0); }

Cells cells_of(const Choice& choice) {
  const Candidate& candidate = choice.candidate;
  const sim::PlanResult& result = choice.result;
  return {schedule_of(candidate),
          std::to_string(candidate.workers),
          candidate.machines.empty() ? "all" : std::to_string(machines_in(candidate)),
          std::to_string(candidate.shards),
          candidate.codec,
          std::to_string(candidate.batch),
          fmt::format("{:.4g}", result.images_per_second),
          fmt::format("{:.2f}", result.speed_up),
          share_text(result.computing),
          share_text(result.exchanging),
          bottleneck_of(result).what,
          note_of(choice)};
}

std::string table_of(std::span<const Choice> choices) {
  std::vector<Cells> rows = {{"schedule", "workers", "machines", "shards", "codec", "batch",
                              "images/s", "speed-up", "compute", "exchange", "bound by", "learns"}};
  for (const Choice& choice : choices) rows.push_back(cells_of(choice));
  return in_columns(rows);
}

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const ClusterCosts& cluster, const Choice& choice) {
  const Candidate& candidate = choice.candidate;
  const Bottleneck bottleneck = bottleneck_of(choice.result);
  return {{"schedule", candidate.schedule.label},
          {"gradient_only", candidate.contributes != Contributes::kDeltas},
          {"replicated", candidate.contributes == Contributes::kReplicated},
          {"workers", candidate.workers},
          {"machines", sim::hosts_of(sim::part_of(cluster, candidate.machines)).size()},
          {"shards", candidate.shards},
          {"codec", candidate.codec},
          {"batch", candidate.batch},
          {"images_per_second", finite(choice.result.images_per_second)},
          {"speed_up", finite(choice.result.speed_up)},
          {"mean_staleness", finite(choice.result.staleness)},
          {"computing", finite(choice.result.computing)},
          {"exchanging", finite(choice.result.exchanging)},
          {"bound_by", bottleneck.what},
          {"learns_alike", sim::learns_alike(candidate)},
          {"note", note_of(choice)},
          {"commands", commands_for(cluster, candidate)}};
}

Json json_of(const ClusterCosts& cluster, std::span<const Choice> choices) {
  Json list = Json::array();
  for (const Choice& choice : choices) list.push_back(json_of(cluster, choice));
  return list;
}

// Those beside the recommended one.
std::span<const Choice> next_of(const std::vector<Choice>& choices, bool is_first_taken) {
  return std::span(choices).subspan(is_first_taken && !choices.empty() ? 1 : 0);
}

}  // namespace

const Choice& recommended(const RecommendReport& report) {
  const sim::Recommendation& found = report.found;
  SPEEDO_ASSERT(!found.alike.empty() || !found.others.empty());
  return found.alike.empty() ? found.others.front() : found.alike.front();
}

// Against one worker without a cluster.
bool pays(const Choice& choice) { return choice.result.speed_up >= 1.0; }

std::vector<std::string> reasons_of(const RecommendReport& report) {
  const Choice& choice = recommended(report);
  const Choice* const second = runner_up(report.found);
  const sim::PlanResult& result = choice.result;
  std::vector<std::string> reasons;
  if (second == nullptr) {
    reasons.emplace_back("Nothing else is possible with what was given.");
    reasons.push_back(fmt::format("It is {:.2f} times as fast as one worker without a cluster, and "
                                  "bound by {}.",
                                  result.speed_up, bottleneck_of(result).what));
  } else {
    const Bottleneck bottleneck = bottleneck_of(second->result);
    reasons.push_back(fmt::format("The runner-up, {}, gives {:.4g} images/s and is bound by {} "
                                  "({} of the time).",
                                  label_of(second->candidate), second->result.images_per_second,
                                  bottleneck.what, share_text(bottleneck.busy)));
    reasons.push_back(fmt::format(
        "The choice gives {:.2f} times as many, {:.2f} times those of one worker without a "
        "cluster; its workers exchange {} of their time, the runner-up's {}.",
        result.images_per_second / second->result.images_per_second, result.speed_up,
        share_text(result.exchanging), share_text(second->result.exchanging)));
  }
  const ClusterCosts used = sim::cluster_for(report.cluster, choice.candidate);
  reasons.push_back(fmt::format(
      "Assumed: {}; {} runs of each worker, {} of {} candidates planned, the others are not "
      "{:g} % better; {} of {} images each.", sim::describe_exchange(used), report.options.rounds,
      report.found.planned, report.found.possible, sim::kWorthPlanning * 100.0,
      count_workers(choice.candidate.workers), choice.candidate.batch));
  return reasons;
}

std::string progress_line(const sim::RecommendProgress& progress) {
  return fmt::format("{} of {} planned, best so far {:.4g} images/s: {}", progress.planned,
                     progress.possible, progress.best->result.images_per_second,
                     label_of(progress.best->candidate));
}

std::string to_json(const RecommendReport& report) {
  const sim::Recommendation& found = report.found;
  const bool is_alike = !found.alike.empty();
  Json object;
  object["title"] = report.cluster.title;
  object["seed"] = report.options.seed;
  object["recommended"] = json_of(report.cluster, recommended(report));
  object["pays"] = pays(recommended(report));
  object["reasons"] = reasons_of(report);
  object["next"] = json_of(report.cluster, next_of(found.alike, is_alike));
  object["others"] = json_of(report.cluster, next_of(found.others, !is_alike));
  object["planned"] = found.planned;
  object["possible"] = found.possible;
  return json_text(object);
}

std::string to_text(const RecommendReport& report) {
  const Choice& choice = recommended(report);
  const sim::Recommendation& found = report.found;
  const bool is_alike = !found.alike.empty();
  std::string text = report.cluster.title.empty() ? "" : report.cluster.title + "\n";
  if (!pays(choice)) {
    text += fmt::format("Recommended: no cluster, one process: {:.4g} images/s\n"
                        "  speedo train --solver S.prototxt\n",
                        choice.result.images_per_second / choice.result.speed_up);
    for (const std::string& line : net_lines(report.cluster, choice.candidate)) {
      text += "  " + line + "\n";
    }
    text += "The best cluster would be ";
  } else {
    text += "Recommended: ";
  }
  text += fmt::format("{}: {:.4g} images/s\n", label_of(choice.candidate),
                      choice.result.images_per_second);
  for (const std::string& line : commands_for(report.cluster, choice.candidate)) {
    text += "  " + line + "\n";
  }
  for (const std::string& reason : reasons_of(report)) text += reason + "\n";
  if (const auto next = next_of(found.alike, is_alike); !next.empty()) {
    text += "\nNext, that learn alike (as one worker with the batch of all):\n" + table_of(next);
  }
  if (const auto others = next_of(found.others, !is_alike); !others.empty()) {
    text += "\nOthers. What they learn of an image differs, so images/s do not compare them; plan "
            "with --train-net:\n" + table_of(others);
  }
  return text;
}

}  // namespace speedo
