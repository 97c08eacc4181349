// The processes of a simulated cluster, and what its checkers are told. The faults are in
// proof_faults.cpp.

#include "sim/proof/proof_cluster.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "speedo.pb.h"
#include "store/chunked_store.hpp"
#include "store/read_once.hpp"
#include "train/parts/clipped_store.hpp"
#include "train/session/state_gathering.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kRestartPause = std::chrono::seconds(1);  // of whoever watches the processes
constexpr Instant kPatience = std::chrono::seconds(20), kComeBack = std::chrono::seconds(5);
constexpr Instant kPatienceForStates = kPatience + StateGathering::kPatience;
// Workers that are told to stop need a moment.
constexpr Instant kEndTime = std::chrono::seconds(3);

// How far the store may be behind merges in memory: what matters is that it is a version that was.
constexpr std::uint64_t kMergesBehind = std::numeric_limits<std::uint32_t>::max();

WorldTiming timing_of(const Scenario& scenario) {
  WorldTiming timing;
  const Instant patience = 2 * scenario.config.worker_timeout;
  timing.silence = std::max<Instant>(kConnectionTimeout, patience);
  return timing;
}

// The store may have older weights than the master.
bool publishes_behind(const Scenario& scenario) {
  return !scenario.shares_memory.empty() || any_replicated(scenario.config.stages);
}

}  // namespace

ProofCluster::ProofCluster(const Scenario& scenario, const ProofParts& parts)
    : scenario_(scenario),
      chunks_(scenario.chunk_elements),
      parts_(parts),
      random_(Random::derive(scenario.seed, {0xC1})),
      problem_(scenario.seed, scenario.elements, scenario.noise),
      network_(random_.next()),
      world_(network_, *this, timing_of(scenario)),
      servers_(world_.queue(), scenario.config.job, scenario.servers),
      log_(world_.queue(), parts.trace),
      lineage_(updates_of(scenario.config.stages), problem_.start(),
               {scenario.learning_rate, scenario.momentum}, violations_),
      record_checker_(servers_.map(), scenario.config.job, world_.queue(), violations_),
      store_checker_(servers_.map(), record_checker_, scenario.config.job,
                     publishes_behind(scenario) ? kMergesBehind : scenario.publish_interval,
                     violations_),
      lease_checker_(world_.queue(), [this](std::string_view name) { return is_dead(name); },
                     violations_),
      start_checker_({.disk = disk_,
                      .map = servers_.map(),
                      .records = record_checker_,
                      .job = scenario.config.job,
                      .prefix = kSnapshotPrefix,
                      .elements = problem_.size(),
                      .wants_states = scenario.config.snapshot_workers},
                     violations_) {
  network_.attach(world_.queue());
  network_.latency = scenario.latency;
  network_.mixes = scenario.mixes_messages;
  if (scenario.mixes_messages) network_.faults.twice = 0.02;
  network_.break_connection = [this](NodeId from, NodeId to) {
    world_.lose_silent(from, to);
    world_.lose_silent(to, from);
  };
  if (!parts.fences) servers_.ignore_fences();
  servers_.on_done = [this](std::size_t server, const KvOperation& operation) {
    watch_store(server, operation);
  };
  servers_.on_unanswered = [this](auto, const auto& each) { watch_unanswered(each); };
  servers_.on_restart = [this](std::size_t server, bool lost) {
    log_.add("store restarted", lost, server);
    if (lost) watch_lost_data(server);
  };
  places_.resize(scenario.workers);
  shards_.resize(scenario.has_shard.size());
  if (scenario.has_weights_in_parts()) {
    if (scenario.shard_copies) record_checker_.expect_copies();
    lineage_.merged_in_parts(
        {scenario.servers, scenario.chunk_elements, scenario.publish_interval});
  }
}

ProofCluster::~ProofCluster() {
  for (const auto& each : masters_) each->master->unwind();
  for (const Place& place : places_) place.work->unwind();
  for (const ShardPlace& shard : shards_) {
    if (shard.work) shard.work->unwind();
  }
}

void ProofCluster::before(const MasterNode& node, const MasterEvent& event) {
  handled_ += 1;
  log_.add(node, event);
  if (std::holds_alternative<master_event::Tick>(event)) feel(clocks_, node.id().value);
  const auto* const trained = std::get_if<master_event::Trained>(&event);
  if (trained != nullptr && !std::isfinite(std::bit_cast<float>(trained->message.loss_bits))) {
    feel(spoilt_, trained->message.run);
  }
  if (Mastership* found = mastership_of(node)) found->checker->before(event);
}

void ProofCluster::after(const MasterNode& node, const MasterEvent& /*event*/,
                         const MasterCommands& commands) {
  for (const MasterCommand& command : commands) log_.add(node, command);
  Mastership* found = mastership_of(node);
  if (found == nullptr) return;
  found->checker->watch_schedule(found->schedule);
  found->checker->after(commands);
  for (const MasterCommand& command : commands) watch_command(*found, command);
}

void ProofCluster::before(const WorkerNode& node, const WorkerEvent& event) {
  handled_ += 1;
  log_.add(node, event);
  if (std::holds_alternative<worker_event::Tick>(event)) feel(clocks_, node.id().value);
}

void ProofCluster::after(const WorkerNode& node, const WorkerEvent& /*event*/,
                         const WorkerCommands& commands) {
  for (const WorkerCommand& command : commands) {
    log_.add(node, command);
    if (std::holds_alternative<worker_command::SendLeave>(command)) {
      feel(leaving_, node.id().value);
    }
    const auto* exit = std::get_if<worker_command::Exit>(&command);
    if (exit == nullptr || !exit->error) continue;
    violations_.report(Check::kProcesses, fmt::format("worker process {} ends with an error: {}",
                                                      node.id().value, exit->error->message));
  }
}

ProofCluster::Mastership* ProofCluster::mastership_of(const MasterNode& node) {
  const auto found = by_node_.find(node.id().value);
  return found == by_node_.end() || !found->second->checker ? nullptr : found->second;
}

ProofMaster* ProofCluster::current_master() {
  for (auto each = masters_.rbegin(); each != masters_.rend(); ++each) {
    ProofMaster& master = *(*each)->master;
    if (master.is_at_work()) return &master;
  }
  return nullptr;
}

bool ProofCluster::any_master_alive() const {
  return std::ranges::any_of(masters_, [](const auto& each) { return each->master->is_at_work(); });
}

bool ProofCluster::any_master_merging() const {
  return std::ranges::any_of(masters_, [](const auto& each) { return each->master->is_merging(); });
}

ProofWorker::Setting ProofCluster::worker_setting(std::size_t place) {
  ProofWorker::Setting setting{
      .scenario = scenario_, .problem = problem_, .servers = servers_, .seed = random_.next()};
  setting.slowness = scenario_.slowness[place];
  setting.make_backend = parts_.make_backend;
  setting.on_spoilt = [this](std::uint64_t run, const FaultMark& mark) { spoilt_[run] = mark; };
  setting.on_begin = [this, place](std::uint64_t term, const TrainMessage& order,
                                   const std::vector<float>& weights) {
    lineage_.check_base(term, order, weights);
    watch_overwriting(place);
  };
  setting.on_withdrawn = [this](const std::string& key) { record_checker_.withdrawn(key); };
  setting.on_trained = [this](const std::string& key, std::uint64_t run) {
    watch_contribution_in_memory(key, run);
    watch_what_was_put_again(key, run);
  };
  if (scenario_.shares_memory.empty() || !scenario_.shares_memory[place]) return setting;
  setting.find_door = [this, place](const std::string& door) {
    return memory_.find(door, [this, place](const std::string& key) {
      watch_overwriting(place);
      places_[place].offered.push_back(key);
    });
  };
  return setting;
}

void ProofCluster::start_worker(std::size_t place_index) {
  Place& place = places_[place_index];
  if (place.work) {
    place.work->unwind();
    old_work_.push_back(std::move(place.work));
  }
  const std::uint64_t process = place.processes++;
  place.offered.clear();
  place.work = std::make_unique<ProofWorker>(worker_setting(place_index));
  WorkerConfig config;
  config.name = fmt::format("host{}/{}/0", place_index, process);
  config.device = "cpu";
  config.master = "master:1";
  config.uuid_high = place_index + 1;
  config.uuid_low = process + 1;
  config.seed = random_.next();
  place.node = &world_.start_worker(config, *place.work);
  place.work->attach(world_.queue(), *place.node, config.name);
  place.work->clients().set_faults(client_faults_);
  // Told to stop by a master that failed, it is started again with the next one.
  place.node->on_exit = [this, place_index, node = place.node] {
    world_.queue().after(kComeBack, [this, place_index, node] {
      if (places_[place_index].node == node && !finished_) start_worker(place_index);
    });
  };
  log_.add("worker started", place_index, place.node->id().value);
}

void ProofCluster::start_shard(std::size_t part) {
  ShardPlace& place = shards_[part];
  if (place.work) {
    place.work->unwind();
    old_work_.push_back(std::move(place.work));
  }
  const std::uint64_t process = place.processes++;
  ProofShard::Setting setting{
      .scenario = scenario_, .servers = servers_, .seed = random_.next()};
  setting.make_backend = parts_.make_backend;
  setting.on_executed = [this](std::uint64_t term, std::size_t server,
                               const KvOperation& operation) {
    lease_checker_.asked_by_master(term, operation, server);
  };
  setting.on_merged = [this] { merges_.by_shards += 1; };
  place.work = std::make_unique<ProofShard>(std::move(setting));
  WorkerConfig config;
  config.name = fmt::format("shard{}/{}/0", part + 1, process);
  config.device = fmt::format("{}:{}", kPartDevice, part + 1);
  config.master = "master:1";
  config.uuid_high = places_.size() + part + 1;
  config.uuid_low = process + 1;
  config.seed = random_.next();
  place.node = &world_.start_worker(config, *place.work);
  place.work->attach(world_.queue(), *place.node, config.name);
  place.work->clients().set_faults(client_faults_);
  place.node->on_exit = [this, part, node = place.node] {
    world_.queue().after(kComeBack, [this, part, node] {
      if (shards_[part].node == node && !finished_) start_shard(part);
    });
  };
  log_.add("shard started", part, place.node->id().value);
}

std::unique_ptr<Strategy> ProofCluster::make_watched(Mastership& mastership,
                                                     const StrategyOptions& options) {
  auto strategy = parts_.make_strategy(options);
  if (!strategy) {
    violations_.report(Check::kProcesses,
                       "the strategy cannot be made: " + strategy.error().message);
    return speedo::make_strategy(StrategyOptions{}).value();
  }
  // A session may make strategies to try them: the one that is given events is at work.
  return watch_strategy(std::move(*strategy), options, violations_,
                        [&mastership](ScheduleChecker* at_work, ScheduleChecker* gone) {
                          if (at_work != nullptr) mastership.schedule = at_work;
                          if (mastership.schedule == gone) mastership.schedule = nullptr;
                        });
}

void ProofCluster::watch_merges(Mastership& mastership, ProofMaster::Setting& setting) {
  setting.on_merged = [this, &mastership](
                          ProofMaster&, const master_command::StartMerge& job,
                          const MergeResult& result, const Merger::Copy& now) {
    watch_merge(mastership, job, result, now);
  };
  setting.on_stage = [this, &mastership](ProofMaster& master, const Merger::Copy& now) {
    watch_published(mastership, now.version);
    lineage_.entered_stage(master.term(), now);
  };
  setting.on_torn = [this, &mastership](ProofMaster&) { watch_torn(mastership, false); };
  setting.read_published = [this](ProofMaster& master, Version version) {
    ChunkedStore store(servers_.shared_map(), scenario_.config.job);
    auto now = read_copy(store, weights_key(), master.term());
    if (now && now->version != version) now.reset();
    return now;
  };
  setting.on_unseen = [this, &mastership](ProofMaster&, const master_command::StartMerge* job,
                                          const MergeResult& result) {
    watch_unseen(mastership, job, result);
  };
}

ProofMaster::Setting ProofCluster::master_setting(Mastership& mastership) {
  ProofMaster::Setting setting{.scenario = scenario_,
                               .problem = problem_,
                               .servers = servers_,
                               .disk = disk_};
  setting.seed = random_.next();
  setting.name = "master" + std::to_string(masters_.size());
  setting.make_backend = parts_.make_backend;
  setting.make_strategy =
      [this, &mastership](const StrategyOptions& options) -> Result<std::unique_ptr<Strategy>> {
    return make_watched(mastership, options);
  };
  setting.starts_anew = mastership.starts_anew = std::exchange(weights_given_up_, false);
  setting.is_dead = [this](std::string_view name) { return is_dead(name); };
  setting.on_executed = [this](ProofMaster& master, std::size_t server,
                               const KvOperation& operation) {
    lease_checker_.asked_by_master(master.term(), operation, server);
  };
  setting.on_files = [this, &mastership](const auto& stored, const auto& chosen) {
    const auto place = start_checker_.chose(stored, chosen);
    if (place && place->states != 0) watch_files(mastership.master->term());
    return place;
  };
  setting.on_written = [this](const std::string& state) { start_checker_.wrote(state); };
  setting.on_read = [this, &mastership](ProofMaster&) { watch_reading(mastership); };
  setting.on_start = [this, &mastership](ProofMaster&, const Merger::Copy& start) {
    watch_start(mastership, start);
  };
  watch_merges(mastership, setting);
  setting.on_end = [this](ProofMaster& master, const std::optional<Error>& error) {
    watch_end(master, error);
  };
  if (!scenario_.shares_memory.empty()) {
    setting.open_door = [this](ProofMaster& master, const std::shared_ptr<SharedStore>& store,
                               std::uint64_t term) {
      return memory_.open(master.name(), store, term,
                          [&master] { return master.node().process().alive(); });
    };
  }
  setting.die = [this](ProofMaster& master) {
    world_.kill(master.node(), false);
    replace_master_soon();
  };
  setting.stand_still = [this](ProofMaster& master, Instant time) { stand_still(master, time); };
  return setting;
}

// `name`: of the process, whatever follows it.
ProofCluster::Mastership* ProofCluster::mastership_named(std::string_view name) const {
  const std::string_view process = name.substr(0, name.find(' '));
  const auto found = std::ranges::find_if(masters_, [&](const auto& each) {
    return each->master && each->master->name() == process;
  });
  return found == masters_.end() ? nullptr : found->get();
}

bool ProofCluster::is_dead(std::string_view name) const {
  const Mastership* const found = mastership_named(name);
  return found != nullptr && !found->master->node().process().alive();
}

// `on_this_machine`: with the port, and so the name, of the one before.
void ProofCluster::start_master(bool on_this_machine, const FaultMark& rival) {
  auto mastership = std::make_unique<Mastership>();
  mastership->rival = rival;
  mastership->master = std::make_unique<ProofMaster>(master_setting(*mastership), world_);
  ProofMaster& master = *mastership->master;
  by_node_[master.node().id().value] = mastership.get();
  masters_.push_back(std::move(mastership));
  if (on_this_machine) world_.give_name(master.node());
  master.clients().set_faults(client_faults_);
  log_.add("master started", master.node().id().value);
  master.start();
}

void ProofCluster::watch_end(ProofMaster& master, const std::optional<Error>& error) {
  log_.add("master ended", master.node().id().value,
           error ? static_cast<std::uint64_t>(error->code) + 1 : 0);
  if (!error) {
    finished_ = &master;
    return;
  }
  // What began before the faults ended may take its time to fail, and then wait for states.
  const bool superseded = error->code == ErrorCode::kSuperseded;
  const Instant since = world_.queue().now() - scenario_.faults_end;
  const bool late = since > (scenario_.config.snapshot_workers ? kPatienceForStates : kPatience);
  const bool is_lost = error->code == ErrorCode::kNotFound || error->code == ErrorCode::kCorrupt;
  const bool excused = is_lost && (part_is_lost_ || record_checker_.may_have_lost_data());
  // A successor's may be whole, a part be back, or that version be there which it does not know.
  const bool met_lost_part = by_node_.at(master.node().id().value)->met_lost_part;
  const bool may_be_whole = part_is_lost_ || met_lost_part || master.term() < newest_term_ ||
                            store_checker_.has_untold(master.term());
  if (excused && (misses_part() || misses_chunks(master))) {
    // As whoever is told so decides: the next master begins anew, or with files.
    log_.add("weights given up");
    weights_given_up_ = true;
  } else if (!superseded && !(excused && may_be_whole) && (late || !is_transient(error->code))) {
    violations_.report(Check::kProcesses,
                       fmt::format("a master ends with an error: {}", error->message));
  }
  if (any_master_alive()) ensure_master();
  replace_master_soon();
}

// A server that loses its data loses its part, unless the next one has a copy of it, or its merger
// is there to put it back.
bool ProofCluster::misses_part() {
  if (!scenario_.has_weights_in_parts()) return false;
  const auto store =
      std::make_shared<ChunkedStore>(servers_.shared_map(), scenario_.config.job);
  if (!store->read(weights_key())) return true;
  std::vector<float> values(problem_.size());
  const ParameterLayout& layout = problem_.layout();
  if (scenario_.shard_copies) return !read_all_parts(store, layout, values);
  return !get_once(*store, weights_key(), layout.digest(), values);
}

void ProofCluster::replace_master_soon() {
  world_.queue().after(kRestartPause, [this] { ensure_master(); });
}

// The newest master that lives is to be found by the workers; it may have outlived the one that
// superseded it. If none lives, a new one starts.
void ProofCluster::ensure_master() {
  if (finished_) return;
  if (!any_master_alive()) return start_master(true);
  ProofMaster* newest = nullptr;
  for (const auto& each : masters_) {
    ProofMaster& other = *each->master;
    const bool alive = other.is_at_work() && other.term() != 0;
    if (alive && (newest == nullptr || other.term() > newest->term())) newest = &other;
  }
  if (newest != nullptr) world_.give_name(newest->node());
}

void ProofCluster::stand_still(ProofMaster& master, Instant time) {
  if (!master.node().process().running()) return;
  world_.freeze(master.node());
  world_.queue().after(time, [&master] { master.node().process().thaw(); });
}

bool ProofCluster::over() const {
  return violations_.any() || finished_ || world_.queue().now() > scenario_.deadline;
}

ProofResult ProofCluster::run() {
  start_master(true);
  for (std::size_t i = 0; i < places_.size(); ++i) start_worker(i);
  for (std::size_t part = 0; part < shards_.size(); ++part) {
    if (scenario_.has_shard[part]) start_shard(part);
  }
  plan_faults();
  while (!over() && world_.queue().step()) {
  }
  if (!violations_.any()) check_end();
  ProofResult result;
  result.hash = log_.hash();
  result.events = handled_;
  result.merges = merges_;
  for (const auto& each : masters_) {
    if (each->checker) result.merges.all += each->checker->merges();
  }
  result.faults = ledger_.table();
  result.check = violations_.check();
  result.violation = violations_.first();
  if (violations_.any()) result.last_events = log_.last();
  return result;
}

void ProofCluster::check_end() {
  if (!finished_) {
    const double seconds = std::chrono::duration<double>(scenario_.deadline).count();
    return violations_.report(
        Check::kProgress,
        fmt::format("training does not end within {:.0f} s of virtual time", seconds));
  }
  ProofMaster& master = **finished_;
  if (master.end_state().iteration < scenario_.config.max_iteration) {
    return violations_.report(Check::kProgress, "training ended before its last iteration");
  }
  record::Session state;
  violations_.expect(Check::kStart, state.ParseFromString(master.end_state().state),
                     "a state that cannot be read");
  const std::set<std::uint64_t> open(state.data_open().begin(), state.data_open().end());
  lineage_.check_complete(master.term(), state.data_fresh(), open);
  const std::vector<float>& weights = master.end_state().weights;
  const double start = problem_.distance(problem_.start());
  if (master.end_state().is_settled && !(problem_.distance(weights) <= start)) {
    violations_.report(Check::kWeights,
                       fmt::format("training leads away from the answer: from {:.3f} to {:.3f}",
                                   start, problem_.distance(weights)));
  }
  world_.queue().run_until(world_.queue().now() + kEndTime);
  const bool another_works = std::ranges::any_of(masters_, [&](const auto& each) {
    return each->master->term() > master.term() && each->master->is_at_work();
  });
  if (ends_undisturbed_ && !another_works) record_checker_.check_end();
}

ProofResult run_proof(const Scenario& scenario, const ProofParts& parts) {
  ProofCluster cluster(scenario, parts);
  return cluster.run();
}

}  // namespace speedo::sim
