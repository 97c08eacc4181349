#include "sim/proof/proof_scenario.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/random.hpp>

#include "sim/proof/proof_schedule.hpp"
#include "train/note_text.hpp"
#include "train/parts/joined_engine.hpp"

namespace speedo::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::chrono::seconds kPatientStoreTimeout{600};

constexpr std::uint64_t kStream = 0x5EED;  // tells this generator's stream from others of the seed
constexpr std::uint64_t kReplicaStream = 0x5EEE;
constexpr std::uint64_t kShardStream = 0x5EEF;
constexpr std::uint64_t kStateStream = 0x5EF0;
constexpr std::uint64_t kManifestStream = 0x5EF1;
constexpr std::uint64_t kExactStream = 0x5EF2;

// A time in [low, high], small ones as likely as large ones.
Instant draw_time(Random& random, Instant low, Instant high) {
  const float whole = std::log(static_cast<float>(high.count()) / static_cast<float>(low.count()));
  const float factor = std::exp(random.uniform() * whole);
  return Instant{static_cast<Instant::rep>(static_cast<float>(low.count()) * factor)};
}

std::uint64_t draw_workers(Random& random, WorkerCounts range) {
  const float whole = std::log(static_cast<float>(range.max) / static_cast<float>(range.min));
  const float drawn = static_cast<float>(range.min) * std::exp(random.uniform() * whole);
  return std::clamp(static_cast<std::uint64_t>(std::lround(drawn)), range.min, range.max);
}

void draw_membership(Random& random, Scenario& scenario) {
  MasterConfig& config = scenario.config;
  config.workers_start = 1 + random.below(scenario.workers);
  if (random.below(3) == 0) {
    config.workers_min = config.workers_start;
    config.workers_max = std::max(config.workers_min, scenario.workers - random.below(2));
  }
  config.worker_timeout = seconds(2 + random.below(9));
  config.stall_timeout = seconds(5 + random.below(16));
  config.shard_by_speed = random.below(4) == 0 && shards_by_speed(config.stages);
}

// Rounds of a number of runs, where training pauses below as many workers.
void draw_exact_rounds(Random& random, Scenario& scenario) {
  const MasterConfig& config = scenario.config;
  if (config.workers_min != config.workers_start || random.below(2) == 0) return;
  for (Schedule& stage : scenario.config.stages) {
    if (find_strategy(stage.strategy.name)->rounds) {
      stage.strategy.exact_workers = config.workers_start;
    }
  }
}

// So many contributions that a run is long enough for faults, and short enough to be repeated
// thousands of times.
void draw_length(Random& random, Scenario& scenario) {
  MasterConfig& config = scenario.config;
  const bool rounds = std::ranges::any_of(config.stages, [](const Schedule& stage) {
    const StrategyEntry* entry = find_strategy(stage.strategy.name);
    return entry->rounds || stage.strategy.name == "grouping";
  });
  const std::uint64_t share = rounds ? scenario.workers : 1;
  const std::uint64_t contributions = 150 + random.below(500);
  config.max_iteration = std::max<std::uint64_t>(15, contributions / share);
  config.test_interval = random.below(3) == 0 ? 0 : 5 + random.below(100);
  config.test_at_start = random.below(4) == 0;
  config.snapshot_interval = random.below(2) == 0 ? 0 : 10 + random.below(100);
  if (config.stages.size() > 1) {
    for (Schedule& stage : config.stages) {
      stage.iterations = 1 + random.below(config.max_iteration / 2 + 1);
    }
  }
  const Instant total = draw_time(random, seconds(8), seconds(60));
  const auto runs = static_cast<Instant::rep>(config.max_iteration * share / scenario.workers + 1);
  scenario.run_time = std::clamp<Instant>(total / runs, milliseconds(20), milliseconds(1500));
  for (std::uint64_t i = 0; i < scenario.workers; ++i) {
    const bool slow = random.below(8) == 0;
    const double usual = 1.0 + 0.5 * random.uniform();
    scenario.slowness.push_back(slow ? 2.0 + 8.0 * random.uniform() : usual);
  }
  scenario.exchange_time = draw_time(random, milliseconds(1), milliseconds(50));
  scenario.merge_time = draw_time(random, milliseconds(1), milliseconds(20));
  scenario.latency = draw_time(random, std::chrono::microseconds(100), milliseconds(100));
  scenario.faults_end = std::clamp<Instant>(total, seconds(5), seconds(50));
}

// Steps so small that the quadratic converges although each worker's view is as old as there are
// workers.
void draw_problem(Random& random, Scenario& scenario) {
  std::uint64_t steps = 1;
  for (const Schedule& stage : scenario.config.stages) {
    steps = std::max<std::uint64_t>(steps, stage.update.steps_per_run);
  }
  scenario.momentum = random.below(2) == 0 ? 0.0F : 0.5F;
  const float share = static_cast<float>(scenario.workers * steps);
  scenario.learning_rate = 0.3F * (1.0F - scenario.momentum) / share;
  scenario.noise = random.below(2) == 0 ? 0.0F : 0.1F;
  scenario.elements = 16 * (1 + random.below(3));  // whole cache lines, as in a net's arena
  scenario.publish_interval = random.below(3);
}

// Of the kinds from `first` on, before `end`; what its kind makes of `extra` is the caller's.
Fault draw_fault_of(Random& random, const Scenario& scenario, std::uint64_t first,
                    std::uint64_t end) {
  Fault fault;
  fault.when = Instant{static_cast<Instant::rep>(
      random.below(static_cast<std::uint64_t>(scenario.faults_end.count())))};
  fault.kind = static_cast<FaultKind>(first + random.below(end - first));
  fault.target = random.below(1U << 20U);
  fault.length = draw_time(random, milliseconds(10), seconds(12));
  fault.extra = random.below(2);
  return fault;
}

constexpr auto kShardFaults = static_cast<std::uint64_t>(kFirstShardFault);

Fault draw_fault(Random& random, const Scenario& scenario) {
  Fault fault = draw_fault_of(random, scenario, 0, kShardFaults);
  switch (fault.kind) {
    case FaultKind::kFlapWorker: fault.extra = 2 + random.below(6); break;
    case FaultKind::kCutWorker: fault.extra = 1 + random.below(3); break;
    case FaultKind::kKillWorkerInPut: fault.extra = random.below(6); break;
    case FaultKind::kKillMasterInMerge:
    case FaultKind::kFreezeMasterInMerge:
    case FaultKind::kRestartStoreInMerge: fault.extra = random.below(24); break;
    case FaultKind::kKillMasterInFiles: fault.extra = random.below(10); break;
    case FaultKind::kDamageCheckpoint: fault.extra = random.below(6); break;
    default: break;
  }
  return fault;
}

void draw_faults(Random& random, Scenario& scenario) {
  const std::uint64_t calm = random.below(8);  // some trainings have none
  const std::uint64_t count = calm == 0 ? 0 : 1 + random.below(18);
  for (std::uint64_t i = 0; i < count; ++i) scenario.faults.push_back(draw_fault(random, scenario));
  std::ranges::stable_sort(scenario.faults, {}, &Fault::when);
  scenario.mixes_messages = random.below(6) == 0;
}

}  // namespace

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const StrategyEntry& entry : strategy_registry()) names.emplace_back(entry.name);
  names.emplace_back(kHybridName);
  return names;
}

// None, some or all of the workers.
void draw_memory(Random& random, Scenario& scenario) {
  const std::uint64_t share = random.below(5);
  if (share < 2) return;
  for (std::uint64_t worker = 0; worker < scenario.workers; ++worker) {
    scenario.shares_memory.push_back(share == 4 || random.below(2) == 0);
  }
}

// Contributions of some stages, or of none.
void draw_codecs(Random& random, Scenario& scenario) {
  constexpr const char* kCodecs[] = {"bf16", "int8", "onebit", "threshold:0.01", "topk:10"};
  if (random.below(2) == 0) return;
  for (Schedule& stage : scenario.config.stages) {
    Schedule coded = stage;
    coded.update.codec = *parse_codec(kCodecs[random.below(std::size(kCodecs))]);
    if (check_schedule(coded)) stage = coded;
  }
}

// Some of the stages in rounds; their workers share no memory.
void draw_replicas(Random& random, Scenario& scenario) {
  if (scenario.config.shard_by_speed) return;
  for (Schedule& stage : scenario.config.stages) {
    Schedule replicated = stage;
    replicated.update = {.kind = UpdateKind::kGradientOnly, .replicated = true};
    if (random.below(3) == 0 && check_schedule(replicated)) stage = replicated;
  }
  if (any_replicated(scenario.config.stages)) scenario.shares_memory.clear();
}

Fault draw_shard_fault(Random& random, const Scenario& scenario) {
  constexpr auto kEnd = static_cast<std::uint64_t>(FaultKind::kCutMasterAtManifest);
  Fault fault = draw_fault_of(random, scenario, kShardFaults, kEnd);
  switch (fault.kind) {
    case FaultKind::kCutShard: fault.extra = 1 + random.below(3); break;
    case FaultKind::kKillShardInMerge:
    case FaultKind::kShardStoreLosesInMerge: fault.extra = random.below(24); break;
    default: break;
  }
  return fault;
}

// A fourth of the jobs that can be merged in parts. Every part has something: chunks are short, and
// as many at least as servers.
void draw_shards(Random& random, Scenario& scenario) {
  if (random.below(4) != 0) return;
  if (!check_parts(updates_of(scenario.config.stages), {})) return;
  constexpr std::size_t kLine = 16;
  scenario.shares_memory.clear();
  scenario.mixes_messages = false;
  scenario.servers = 2 + random.below(3);
  scenario.chunk_elements = kLine * (1 + random.below(2));
  const std::size_t lines = scenario.chunk_elements / kLine;
  scenario.elements = kLine * (lines * (scenario.servers - 1) + 1 + random.below(2 * lines));
  scenario.shard_copies = random.below(4) != 0;
  for (std::size_t part = 0; part < scenario.servers; ++part) {
    scenario.has_shard.push_back(random.below(8) != 0);
  }
  const std::uint64_t count = scenario.faults.empty() ? 0 : 1 + random.below(10);
  for (std::uint64_t i = 0; i < count; ++i) {
    scenario.faults.push_back(draw_shard_fault(random, scenario));
  }
  std::ranges::stable_sort(scenario.faults, {}, &Fault::when);
}

// In half of the jobs that are merged in parts and have faults.
void draw_manifest_faults(Random& random, Scenario& scenario) {
  if (scenario.has_shard.empty() || scenario.faults.empty() || random.below(2) != 0) return;
  constexpr auto kKind = static_cast<std::uint64_t>(FaultKind::kCutMasterAtManifest);
  const std::uint64_t count = 1 + random.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    scenario.faults.push_back(draw_fault_of(random, scenario, kKind, kKind + 1));
  }
  std::ranges::stable_sort(scenario.faults, {}, &Fault::when);
}

// A third of the jobs that write snapshots while they train.
void draw_states(Random& random, Scenario& scenario) {
  MasterConfig& config = scenario.config;
  config.snapshot_workers = random.below(3) == 0 && config.snapshot_interval != 0;
}

// Time for thrice what every iteration costs if one worker after the other does them: its
// computation, its requests for and of every chunk and every server's manifest, its messages and
// its merge. What requests cost counts where a run is short.
void set_deadline(Scenario& scenario) {
  double slowest = 1.0;
  for (const double each : scenario.slowness) slowest = std::max(slowest, each);
  const auto in_seconds = [](Instant time) { return std::chrono::duration<double>(time).count(); };
  const double run_s =
      in_seconds(scenario.run_time) * slowest * static_cast<double>(kShardsPerRunMax) / 4.0;
  const std::size_t chunks =
      (scenario.elements + scenario.chunk_elements - 1) / scenario.chunk_elements;
  const auto requests = static_cast<double>(2 * (chunks + scenario.servers));
  const double store_s = requests * in_seconds(scenario.exchange_time);
  const double rest_s = in_seconds(scenario.merge_time + 4 * scenario.latency);
  const double all_s = (run_s + store_s + rest_s) * 3.0 *
                       static_cast<double>(scenario.config.max_iteration);
  scenario.deadline = scenario.faults_end + seconds(240) +
                      Instant{static_cast<Instant::rep>(all_s * 1e9)};
}

Scenario draw_scenario(std::uint64_t seed, const std::vector<std::string>& names,
                       WorkerCounts workers, bool in_parts) {
  SPEEDO_ASSERT(!names.empty());
  Random random = Random::derive(seed, {kStream});
  Scenario scenario;
  scenario.seed = seed;
  scenario.strategy = names[random.below(names.size())];
  scenario.workers = draw_workers(random, workers);
  scenario.config.stages = draw_stages(random, scenario.strategy, scenario.workers);
  scenario.config.job = "proof";
  scenario.config.store = StoreAddress("memory");
  draw_length(random, scenario);
  draw_membership(random, scenario);
  draw_problem(random, scenario);
  draw_faults(random, scenario);
  if (random.below(2) == 0) scenario.config.store_timeout = kPatientStoreTimeout;
  draw_memory(random, scenario);
  draw_codecs(random, scenario);
  Random replicas = Random::derive(seed, {kReplicaStream});
  draw_replicas(replicas, scenario);
  Random shards = Random::derive(seed, {kShardStream});
  if (in_parts) draw_shards(shards, scenario);
  Random manifests = Random::derive(seed, {kManifestStream});
  draw_manifest_faults(manifests, scenario);
  Random states = Random::derive(seed, {kStateStream});
  draw_states(states, scenario);
  Random exact = Random::derive(seed, {kExactStream});
  draw_exact_rounds(exact, scenario);
  set_deadline(scenario);
  return scenario;
}

std::string to_string(const Scenario& scenario) {
  const MasterConfig& config = scenario.config;
  const std::string range =
      config.workers_max == 0
          ? fmt::format("{} or more", config.workers_min)
          : fmt::format("{} to {}", config.workers_min, config.workers_max);
  std::string text = fmt::format(
      "{} (start at {}, {}), {} iterations, {} elements, lr {:.4g}, momentum {}{}{}",
      count_workers(scenario.workers), config.workers_start, range,
      config.max_iteration, scenario.elements, scenario.learning_rate, scenario.momentum,
      config.shard_by_speed ? ", shards by speed" : "",
      scenario.mixes_messages ? ", messages mixed" : "");
  if (!scenario.shares_memory.empty()) {
    text += fmt::format(", {} in shared memory", std::ranges::count(scenario.shares_memory, true));
  }
  if (!scenario.has_shard.empty()) {
    text += fmt::format(", {} parts by {} shards, chunks of {}{}", scenario.servers,
                        std::ranges::count(scenario.has_shard, true), scenario.chunk_elements,
                        scenario.has_weights_in_parts() && !scenario.shard_copies ? ", no copies"
                                                                                  : "");
  }
  if (config.snapshot_workers) text += ", states of workers in snapshots";
  for (const Schedule& stage : config.stages) text += "; " + describe(stage);
  return text;
}

}  // namespace speedo::sim
