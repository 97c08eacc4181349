#include "measure/simulate/simulate_recommend_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>
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

constexpr int kRedisPort = 6379;
// Whoever merges waits for links and servers meanwhile: only if nothing else is nearly as busy, it
// is what holds the others up.
constexpr double kMergerLead = 0.1;

std::string schedule_flags(const Candidate& candidate) {
  const StrategyOptions& strategy = candidate.schedule.strategy;
  std::string flags = strategy.name == "sync" ? "--sync" : "--strategy " + strategy.name;
  if (strategy.name == "ssp") flags += fmt::format(" --staleness {}", strategy.staleness);
  if (strategy.name == "partial-sync") {
    flags += fmt::format(" --max-advance {}", strategy.max_advance);
  }
  if (strategy.name == "weedout") flags += fmt::format(" --weedout {}", strategy.window);
  if (candidate.schedule.steps) {
    flags += fmt::format(" --communication-period {}", *candidate.schedule.steps);
  }
  if (candidate.contributes != Contributes::kDeltas) flags += " --gradient-only";
  if (candidate.contributes == Contributes::kReplicated) flags += " --replicated";
  if (candidate.codec != "none") flags += " --codec " + candidate.codec;
  return flags;
}

// Each server's, with a port of its own where several are on one machine.
std::vector<std::string> server_addresses(const ClusterCosts& cluster) {
  const std::vector<sim::ClusterHost> hosts = sim::hosts_of(cluster);
  std::map<std::size_t, int> ports;
  std::vector<std::string> addresses;
  for (const std::size_t host : sim::server_hosts(cluster)) {
    const int port = kRedisPort + ports[host]++;
    addresses.push_back(hosts[host].name + (port == kRedisPort ? "" : fmt::format(":{}", port)));
  }
  return addresses;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// What masters and workers of several machines show each other and their Redis.
constexpr const char* kProofs = " --token-file job.token --redis-password-file redis.password";

std::string workers_line(const ClusterCosts& cluster, const std::vector<std::size_t>& places,
                         const std::string& flags) {
  const std::vector<sim::ClusterHost> hosts = sim::hosts_of(cluster);
  std::vector<std::string> names;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const auto count = std::ranges::count(places, host);
    if (count == 0) continue;
    names.push_back(hosts[host].name + (count == 1 ? "" : fmt::format(" ({} times)", count)));
  }
  return "on " + joined(names, ", ") + ": speedo-worker --master ADDRESS" + flags + kProofs;
}

struct Bottleneck {
  std::string what;
  double busy = 0.0;
};

Bottleneck bottleneck_of(const sim::PlanResult& result) {
  Bottleneck most{"its workers' computing", result.computing};
  const double link = std::min(result.link_busy, 1.0);
  if (link > most.busy) most = {"the link of " + result.link_host, link};
  if (result.store_busy > most.busy) most = {"the store's thread", result.store_busy};
  if (result.master_busy > most.busy + kMergerLead) most = {"the merger", result.master_busy};
  return most;
}

std::string schedule_of(const Candidate& candidate) {
  std::string text = candidate.schedule.label;
  if (candidate.contributes == Contributes::kGradients) text += " by gradients";
  if (candidate.contributes == Contributes::kReplicated) text += " replicated";
  return text;
}

std::string label_of(const Candidate& candidate) {
  std::string text = schedule_of(candidate);
  text += ", " + count_workers(candidate.workers);
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
  return joined(notes, ", ");
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
  std::vector<Cells> rows = {{"schedule", "workers", "shards", "codec", "batch", "images/s",
                              "speed-up", "compute", "exchange", "bound by", "learns"}};
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

std::vector<std::string> commands_for(const ClusterCosts& cluster, const Candidate& candidate) {
  const ClusterCosts used = sim::cluster_for(cluster, candidate);
  const std::vector<std::size_t> places = *sim::place_workers(used, candidate.workers);
  const std::vector<std::size_t> servers = sim::server_hosts(used);
  const std::size_t master = sim::host_of(used, used.master.machine);
  const bool is_one_machine =
      std::ranges::all_of(places, [&](std::size_t host) { return host == master; }) &&
      std::ranges::all_of(servers, [&](std::size_t host) { return host == master; });
  const bool is_replicated = candidate.contributes == Contributes::kReplicated;
  const std::string memory =
      !is_replicated && !*used.worker.shares_memory ? " --no-shared-memory" : "";
  std::string flags = fmt::format("--solver S.prototxt --workers {} {}", candidate.workers,
                                  schedule_flags(candidate));
  std::string parts;
  if (candidate.shards > 0) {
    parts = fmt::format(" --shards {}{}", candidate.shards,
                        used.store.copies || is_replicated ? "" : " --no-shard-copies");
  }
  std::vector<std::string> lines;
  if (is_one_machine) {
    lines.push_back("speedo run " + flags + parts + memory);
  } else {
    const std::vector<std::string> addresses = server_addresses(used);
    const std::string head = sim::hosts_of(used)[master].name;
    lines.emplace_back("once, for all machines: speedo token create job.token; (umask 077; head -c "
                       "24 /dev/urandom | base64 > redis.password)");
    lines.push_back("on " + joined(addresses, ", ") +
                    ": { cat conf/redis.conf; echo \"bind $(hostname -I)\"; echo \"requirepass "
                    "$(cat redis.password)\"; } | redis-server -");
    lines.push_back(fmt::format("on {}: speedo-master {} --redis {} --bind {}{}{}", head, flags,
                                joined(addresses, ","), head, parts + memory, kProofs));
    for (std::size_t shard = 0; shard < candidate.shards; ++shard) {
      lines.push_back(fmt::format("on {}: speedo-worker --master ADDRESS --shard={}{}",
                                  sim::hosts_of(used)[servers[shard]].name, shard + 1, kProofs));
    }
    lines.push_back(workers_line(used, places, memory));
  }
  if (candidate.batch != cluster.net.batch) {
    lines.push_back(fmt::format("in the net: batch_size: {}", candidate.batch));
  }
  return lines;
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
      "Assumed: {}; {} runs of each worker, {} of {} candidates planned, the others cannot be "
      "better; {} of {} images each.", sim::describe_exchange(used), report.options.rounds,
      report.found.planned, report.found.possible, count_workers(choice.candidate.workers),
      choice.candidate.batch));
  return reasons;
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
                        "  speedo train --solver S.prototxt\nThe best cluster would be ",
                        choice.result.images_per_second / choice.result.speed_up);
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
