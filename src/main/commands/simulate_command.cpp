// `speedo simulate`: with --cluster or --calibrate a planner (simulate_plan.cpp), else the proof:
// thousands of simulated disasters, and what must hold in each.

#include "main/commands/simulate_command.hpp"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>
#include <speedo/cpu/cpu_options.hpp>

#include "base/log.hpp"
#include "base/parse_number.hpp"
#include "cli/arguments.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"
#include "main/commands/simulate_plan.hpp"
#include "measure/simulate/simulate_proof_report.hpp"
#include "sim/proof/proof_campaign.hpp"

namespace speedo {
namespace {

constexpr const char* kSeeds = "1..100";

struct SimulateFlags {
  std::string strategy, workers;
  std::optional<std::string> seeds, replay;
  int threads = 0, repeat_every = 1;
  bool trace = false, json = false;
};

bool is_traced(const SimulateFlags& flags) { return flags.trace || flags.replay; }

Error usage(const std::string& flag, const std::string& text, const char* wanted) {
  return {ErrorCode::kUsage, "--" + flag + " '" + text + "' is not " + wanted};
}

// "FIRST SEPARATOR LAST", or one number for both.
std::optional<NumberRange> parse_range(std::string_view text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  const bool is_one = at == std::string_view::npos;
  const auto first = parse_number<std::uint64_t>(text.substr(0, at));
  const auto last =
      is_one ? first : parse_number<std::uint64_t>(text.substr(at + separator.size()));
  if (!first || !last || *first > *last) return std::nullopt;
  return NumberRange{*first, *last};
}

SimulateFlags simulate_flags(const OptionValues& values) {
  SimulateFlags flags;
  values.get("strategy", flags.strategy);
  values.get("workers", flags.workers);
  values.get("seeds", flags.seeds);
  values.get("replay", flags.replay);
  values.get("threads", flags.threads);
  values.get("repeat-every", flags.repeat_every);
  values.get("trace", flags.trace);
  values.get("json", flags.json);
  return flags;
}

Result<void> check(const SimulateFlags& flags) {
  if (flags.json && is_traced(flags)) {
    return Error{ErrorCode::kUsage,
                 "--json prints one object, --trace and --replay all that happens: choose"};
  }
  if (!flags.replay) return {};
  if (flags.seeds) {
    return Error{ErrorCode::kUsage,
                 "--replay simulates one seed, --seeds many: give one of them"};
  }
  if (flags.threads > 0) {
    return Error{ErrorCode::kUsage,
                 "--replay simulates one seed, --threads many at once: leave one of them out"};
  }
  return {};
}

Result<sim::Campaign> make_campaign(const SimulateFlags& flags) {
  sim::Campaign campaign;
  SPEEDO_ASSIGN(campaign.names, parse_schedule_names(flags.strategy));
  SPEEDO_ASSIGN(const NumberRange workers, parse_worker_range(flags.workers));
  campaign.workers = {workers.first, workers.last};
  NumberRange seeds;
  if (!flags.replay) {
    SPEEDO_ASSIGN(seeds, parse_seeds(flags.seeds.value_or(kSeeds)));
  } else {
    const auto seed = parse_number<std::uint64_t>(*flags.replay);
    if (!seed) {
      return usage("replay", *flags.replay,
                   "a seed: a whole number of 64 bits, as a violation names it");
    }
    seeds = {*seed, *seed};
  }
  campaign.first_seed = seeds.first;
  campaign.last_seed = seeds.last;
  campaign.repeat_every = static_cast<std::uint64_t>(flags.repeat_every);
  campaign.threads = is_traced(flags) ? 1 : flags.threads > 0 ? flags.threads : default_threads();
  return campaign;
}

sim::ProofParts make_parts(bool trace) {
  sim::ProofParts parts;
  parts.make_backend = []() -> Result<std::unique_ptr<Backend>> { return make_cpu_backend(1); };
  if (trace) {
    parts.trace = [](const std::string& line) {
      std::printf("%s\n", line.c_str());
      // Between lines that are logged meanwhile.
      std::fflush(stdout);
    };
  }
  return parts;
}

// How to see a violation again: its seed is to follow.
std::string replay_of(const SimulateFlags& flags) {
  return "speedo simulate --strategy " + flags.strategy + " --workers " + flags.workers +
         " --replay";
}

void print(const sim::CampaignFinding& found, const SimulateFlags& flags) {
  const auto seed = static_cast<unsigned long long>(found.scenario.seed);
  std::printf("violation: seed=%llu strategy=%s workers=%llu event=%llu check=%s: %s\n  %s\n",
              seed,
              found.scenario.strategy.c_str(),
              static_cast<unsigned long long>(found.scenario.workers),
              static_cast<unsigned long long>(found.result.events), found.result.check.c_str(),
              found.result.violation.c_str(),
              to_string(found.scenario).c_str());
  for (const std::string& line : found.result.last_events) std::printf("  %s\n", line.c_str());
  std::printf("  replay: %s %llu\n", replay_of(flags).c_str(), seed);
}

void print(const sim::CampaignResult& result, const SimulateFlags& flags) {
  if (flags.json) {
    std::printf("%s\n", to_json(result, replay_of(flags)).c_str());
  } else {
    for (const sim::CampaignFinding& found : result.violations) print(found, flags);
    std::printf("%s", to_table(result.faults).c_str());
    const sim::MergeCounts& merges = result.merges;
    std::printf("%llu merges, %llu of them begun before they were ordered, %llu in shared memory, "
                "%llu coded, %llu by replicas, %llu in parts (%llu of those by shards)\n",
                static_cast<unsigned long long>(merges.all),
                static_cast<unsigned long long>(merges.ahead),
                static_cast<unsigned long long>(merges.in_memory),
                static_cast<unsigned long long>(merges.coded),
                static_cast<unsigned long long>(merges.replicated),
                static_cast<unsigned long long>(merges.in_parts),
                static_cast<unsigned long long>(merges.by_shards));
    std::printf("%llu seeds, %llu events, %zu violations\n",
                static_cast<unsigned long long>(result.seeds),
                static_cast<unsigned long long>(result.events), result.violations.size());
  }
  for (const sim::FaultKind kind : idle_kinds(result.faults, result.in_parts)) {
    const sim::FaultCount& count = result.faults[static_cast<std::size_t>(kind)];
    std::fprintf(stderr, "error: %s\n", describe_idle(kind, count).c_str());
  }
}

// Violations as they are found; on a terminal a live line, else a line every tenth of the way.
class ProgressReport {
 public:
  explicit ProgressReport(std::uint64_t total) : total_(total) {}
  void operator()(const sim::CampaignResult& so_far) {
    if (so_far.violations.size() > told_) tell(so_far.violations[told_++]);
    const std::string text = std::to_string(so_far.seeds) + " of " + std::to_string(total_) +
                             " seeds, violations: " + std::to_string(told_);
    if (has_live_line()) return show_live_line(text);
    const std::uint64_t tenth = std::max<std::uint64_t>(1, total_ / 10);
    if (total_ > 1 && so_far.seeds % tenth == 0) std::fprintf(stderr, "%s\n", text.c_str());
  }

 private:
  static void tell(const sim::CampaignFinding& found) {
    clear_live_line();
    std::fprintf(stderr, "violation: seed=%llu check=%s: %s\n",
                 static_cast<unsigned long long>(found.scenario.seed), found.result.check.c_str(),
                 found.result.violation.c_str());
  }

  const std::uint64_t total_;
  std::size_t told_ = 0;
};

Result<int> prove(const SimulateFlags& flags) {
  SPEEDO_ASSIGN(const sim::Campaign campaign, make_campaign(flags));
  const bool traced = is_traced(flags);
  if (flags.replay) {
    const auto scenario =
        sim::draw_scenario(campaign.first_seed, campaign.names, campaign.workers);
    std::printf("seed=%llu strategy=%s: %s\n",
                static_cast<unsigned long long>(campaign.first_seed), scenario.strategy.c_str(),
                to_string(scenario).c_str());
  }
  ProgressReport progress(campaign.last_seed - campaign.first_seed + 1);
  const sim::CampaignResult result = sim::run_campaign(
      campaign, make_parts(traced), [&](const sim::CampaignResult& so_far) { progress(so_far); },
      [] { return stop_requested().has_value(); });
  clear_live_line();
  print(result, flags);
  if (const auto reason = stop_requested()) {
    return Error{ErrorCode::kUnavailable, "stopped (" + *reason + ") before the last seed"};
  }
  return exit_code_of(result);
}

bool names_any(const std::vector<std::string>& arguments,
               std::initializer_list<std::string_view> flags) {
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    const std::string name = squash(argument.substr(0, argument.find('=')));
    return argument.starts_with('-') && std::ranges::find(flags, name) != flags.end();
  });
}

// Read before any flag is parsed: the planner has flags of its own. A file or a variable may name
// what to plan, too: then a command line that the planner takes is its own.
bool asks_for_plan(const std::vector<std::string>& arguments) {
  if (names_any(arguments, {"cluster", "calibrate", "recommend"})) return true;
  if (names_any(arguments, {"help", "h", "version"})) return false;
  OptionValues values(Program::kPlan);
  if (!read_some_options(arguments, values)) return false;
  std::string cluster;
  bool calibrates = false;
  values.get("cluster", cluster);
  values.get("calibrate", calibrates);
  return calibrates || !cluster.empty();
}

}  // namespace

Result<NumberRange> parse_seeds(const std::string& text) {
  const auto range = parse_range(text, "..");
  if (!range || range->last - range->first == UINT64_MAX) {
    return usage("seeds", text, "A..B with whole numbers, A not above B");
  }
  return *range;
}

Result<NumberRange> parse_worker_range(const std::string& text) {
  const auto range = parse_range(text, ":");
  if (!range || range->first < 1 || range->last > kSimulatedWorkersMax) {
    return usage("workers", text,
                 "MIN:MAX with whole numbers from 1 to 1024, MIN not above MAX");
  }
  return *range;
}

Result<std::vector<std::string>> parse_schedule_names(const std::string& text) {
  const std::vector<std::string> known = sim::scenario_names();
  if (text == "all") return known;
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    if (const StrategyEntry* entry = find_strategy(name)) name = entry->name;
    if (std::ranges::find(known, name) == known.end()) {
      std::string list = "all";
      for (const std::string& each : known) list += ", " + each;
      return Error{ErrorCode::kUsage,
                   "--strategy: unknown schedule '" + name + "'; known are: " + list};
    }
    names.push_back(std::move(name));
    begin = end + 1;
  }
  return names;
}

Result<int> simulate_command(const CommandLine& line) {
  if (asks_for_plan(line.arguments)) return simulate_plan(line.arguments);
  OptionValues values(Program::kProof);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const SimulateFlags flags = simulate_flags(values);
  SPEEDO_TRY(check(flags));
  set_up_console(false);
  // What the simulated processes log is about faults that were meant.
  if (!is_traced(flags)) set_log_level(LogLevel::kNothing);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  return prove(flags);
}

}  // namespace speedo
