// The processes of a simulated cluster, and what its checkers are told. The faults are in
// proof_faults.cpp.

#include "sim/proof_cluster.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "speedo.pb.h"
#include "store/chunked_store.hpp"
#include "store/mastership.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kRestartPause = std::chrono::seconds(1);  // of whoever watches the processes
constexpr Instant kPatience = std::chrono::seconds(20);
constexpr Instant kComeBack = std::chrono::seconds(5);
// Workers that are told to stop need a moment.
constexpr Instant kEndTime = std::chrono::seconds(3);

WorldTiming timing_of(const Scenario& scenario) {
  WorldTiming timing;
  const Instant patience = 2 * scenario.config.worker_timeout;
  timing.silence = std::max<Instant>(kConnectionTimeout, patience);
  return timing;
}

void feel(const std::map<std::uint64_t, FaultMark>& marks, std::uint64_t key) {
  if (const auto found = marks.find(key); found != marks.end()) found->second.felt();
}

}  // namespace

ProofCluster::ProofCluster(const Scenario& scenario, const ProofParts& parts)
    : scenario_(scenario),
      parts_(parts),
      random_(Random::derive(scenario.seed, {0xC1})),
      problem_(scenario.seed, scenario.elements, scenario.noise),
      network_(random_.next()),
      world_(network_, *this, timing_of(scenario)),
      server_(world_.queue()),
      log_(world_.queue(), parts.trace),
      lineage_(updates_of(scenario.config.stages), problem_.start(),
               {scenario.learning_rate, scenario.momentum}, violations_),
      store_checker_(server_, scenario.config.job, scenario.publish_interval, violations_) {
  network_.attach(world_.queue());
  network_.latency = scenario.latency;
  network_.mixes = scenario.mixes_messages;
  if (scenario.mixes_messages) network_.faults.twice = 0.02;
  network_.break_connection = [this](NodeId from, NodeId to) {
    world_.lose_silent(from, to);
    world_.lose_silent(to, from);
  };
  server_.ignores_fences = !parts.fences;
  server_.on_done = [this](const KvOperation& operation) { watch_store(operation); };
  server_.on_restart = [this](bool lost) {
    log_.add("store restarted", lost);
    if (!lost) return;
    lineage_.all_may_be_lost();
    store_checker_.restarted();
  };
  seats_.resize(scenario.workers);
}

ProofCluster::~ProofCluster() {
  for (const auto& each : masters_) each->master->unwind();
  for (const Seat& seat : seats_) seat.work->unwind();
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
    violations_.report(fmt::format("worker process {} ends with an error: {}", node.id().value,
                                   exit->error->message));
  }
}

ProofCluster::Mastership* ProofCluster::mastership_of(const MasterNode& node) {
  const auto found = by_node_.find(node.id().value);
  return found == by_node_.end() || !found->second->checker ? nullptr : found->second;
}

ProofMaster* ProofCluster::current_master() {
  for (auto each = masters_.rbegin(); each != masters_.rend(); ++each) {
    ProofMaster& master = *(*each)->master;
    if (!master.ended() && master.node().process().alive()) return &master;
  }
  return nullptr;
}

bool ProofCluster::any_master_alive() const {
  return std::ranges::any_of(masters_, [](const auto& each) {
    return !each->master->ended() && each->master->node().process().alive();
  });
}

bool ProofCluster::any_master_merging() const {
  return std::ranges::any_of(masters_, [](const auto& each) { return each->master->is_merging(); });
}

void ProofCluster::start_worker(std::size_t seat_index) {
  Seat& seat = seats_[seat_index];
  if (seat.work) {
    seat.work->unwind();
    old_work_.push_back(std::move(seat.work));
  }
  const std::uint64_t process = seat.processes++;
  seat.work = std::make_unique<ProofWorker>(ProofWorker::Setting{
      .scenario = scenario_,
      .problem = problem_,
      .server = server_,
      .seed = random_.next(),
      .slowness = scenario_.slowness[seat_index],
      .make_backend = parts_.make_backend,
      .on_spoilt = [this](std::uint64_t run, const FaultMark& mark) { spoilt_[run] = mark; }});
  WorkerConfig config;
  config.name = fmt::format("host{}/{}/0", seat_index, process);
  config.device = "cpu";
  config.master = "master:1";
  config.uuid_high = seat_index + 1;
  config.uuid_low = process + 1;
  config.seed = random_.next();
  seat.node = &world_.start_worker(config, *seat.work);
  seat.work->attach(world_.queue(), *seat.node, config.name);
  seat.work->client().set_faults(client_faults_);
  // Told to stop by a master that failed, it is started again with the next one.
  seat.node->on_exit = [this, seat_index, node = seat.node] {
    world_.queue().after(kComeBack, [this, seat_index, node] {
      if (seats_[seat_index].node == node && !finished_) start_worker(seat_index);
    });
  };
  log_.add("worker started", seat_index, seat.node->id().value);
}

std::unique_ptr<Strategy> ProofCluster::make_watched(Mastership& mastership,
                                                     const StrategyOptions& options) {
  auto strategy = parts_.make_strategy(options);
  if (!strategy) {
    violations_.report("the strategy cannot be made: " + strategy.error().message);
    return speedo::make_strategy(StrategyOptions{}).value();
  }
  // A session may make strategies to try them: the one that is given events is at work.
  return watch_strategy(std::move(*strategy), options, violations_,
                        [&mastership](ScheduleChecker* at_work, ScheduleChecker* gone) {
                          if (at_work != nullptr) mastership.schedule = at_work;
                          if (mastership.schedule == gone) mastership.schedule = nullptr;
                        });
}

ProofMaster::Setting ProofCluster::master_setting(Mastership& mastership) {
  ProofMaster::Setting setting{.scenario = scenario_,
                               .problem = problem_,
                               .server = server_,
                               .files = files_};
  setting.seed = random_.next();
  setting.name = "master" + std::to_string(masters_.size());
  setting.make_backend = parts_.make_backend;
  setting.make_strategy =
      [this, &mastership](const StrategyOptions& options) -> Result<std::unique_ptr<Strategy>> {
    return make_watched(mastership, options);
  };
  setting.is_dead = [this](std::string_view name) {
    const Mastership* const found = mastership_named(name);
    return found != nullptr && !found->master->node().process().alive();
  };
  // Others may have published what they do not know yet, or will never know.
  setting.on_chosen = [this, &mastership](ProofMaster&) {
    for (const auto& each : masters_) {
      if (each.get() != &mastership && each->master->is_publishing()) watch_torn(*each);
    }
  };
  setting.on_start = [this, &mastership](ProofMaster&, const Merger::Copy& start) {
    watch_start(mastership, start);
  };
  setting.on_merged = [this, &mastership](
                          ProofMaster&, const master_command::StartMerge& job,
                          const MergeResult& result, const Merger::Copy& now) {
    watch_merge(mastership, job, result, now);
  };
  setting.on_stage = [this](ProofMaster& master, const Merger::Copy& now) {
    lineage_.entered_stage(master.epoch(), now);
  };
  setting.on_torn = [this, &mastership](ProofMaster&) { watch_torn(mastership); };
  setting.on_end = [this](ProofMaster& master, const std::optional<Error>& error) {
    watch_end(master, error);
  };
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

// `on_this_machine`: with the port, and so the name, of the one before.
void ProofCluster::start_master(bool on_this_machine, const FaultMark& rival) {
  auto mastership = std::make_unique<Mastership>();
  mastership->rival = rival;
  mastership->master = std::make_unique<ProofMaster>(master_setting(*mastership), world_);
  ProofMaster& master = *mastership->master;
  by_node_[master.node().id().value] = mastership.get();
  masters_.push_back(std::move(mastership));
  if (on_this_machine) world_.give_name(master.node());
  master.client().set_faults(client_faults_);
  log_.add("master started", master.node().id().value);
  master.start();
}

void ProofCluster::watch_store(const KvOperation& operation) {
  if (operation.kind == KvOperation::Kind::kClaim) watch_claim(operation);
  watch_contribution(operation);
  store_checker_.done(operation);
}

// What a worker has put is known by its manifest, which comes last.
void ProofCluster::watch_contribution(const KvOperation& operation) {
  const std::string prefix = job_prefix(scenario_.config.job);
  const std::string& key = operation.key;
  const bool is_one = operation.kind == KvOperation::Kind::kSet &&
                      key.starts_with(prefix + contribution_key_prefix()) &&
                      key.ends_with(":m") && key.find("/local:") == std::string::npos;
  if (!is_one) return;
  ChunkedStore store(std::shared_ptr<KeyValue>(std::shared_ptr<void>(), &server_.map()),
                     scenario_.config.job);
  const std::string name = key.substr(prefix.size(), key.size() - prefix.size() - 2);
  const auto reader = store.read(name);
  if (!reader) return;
  const RecordInfo info = (*reader)->info();
  std::vector<float> values(info.element_count);
  const auto damaged = damaged_.extract(prefix + name);
  if (!get(store, name, info.model, values)) {
    lineage_.may_be_lost(RunId{info.version});
    if (damaged) spoilt_[info.version] = damaged.mapped();
    return;
  }
  const std::uint64_t epoch = std::stoull(name.substr(contribution_key_prefix().size()));
  newest_runs_[{epoch, info.worker}] = info.version;
  lineage_.contributed(RunId{info.version}, std::move(values));
}

void ProofCluster::watch_claim(const KvOperation& operation) {
  Mastership* const mastership = mastership_named(operation.master->holder);
  const auto answer = decode_answer(operation.text);
  if (mastership == nullptr || !answer) return;
  if (answer->kind == MasterAnswer::Kind::kDone) {
    if (mastership->master->epoch() == 0) {
      watch_granted(*mastership, operation.master->epoch);
    }
  } else {
    mastership->rival.felt();
  }
}

void ProofCluster::watch_granted(Mastership& mastership, std::uint64_t epoch) {
  ProofMaster& master = *mastership.master;
  master.granted(epoch);
  log_.add("mastership granted", master.node().id().value, epoch);
  const bool another_lives = std::ranges::any_of(masters_, [&](const auto& each) {
    return each.get() != &mastership && !each->master->ended() &&
           each->master->node().process().alive();
  });
  if (another_lives) mastership.rival.felt();
  newest_epoch_ = std::max(newest_epoch_, epoch);
  store_checker_.granted(epoch);
  world_.give_name(master.node());
}

// What its workers have put is its successor's to erase.
bool ProofCluster::is_stale(const Mastership& mastership) const {
  return mastership.master->epoch() < newest_epoch_;
}

void ProofCluster::watch_start(Mastership& mastership, const Merger::Copy& start) {
  ProofMaster& master = *mastership.master;
  lineage_.begin(master.epoch(),
                 Checkpoint{start.version, start.weights, start.histories, start.state});
  MasterConfig config = master.config();
  config.epoch = config.first_run = master.epoch();
  config.first_version = Version{start.version.value + 1};
  config.model = problem_.layout().digest();
  MasterSession session(config);
  if (!start.state.empty()) {
    violations_.expect(session.restore(start.state).has_value(), "a state that cannot be read");
  }
  const MasterProgress& progress = session.progress();
  mastership.checker = std::make_unique<SessionChecker>(config, progress.iteration, progress.stage,
                                                        lineage_, violations_);
}

void ProofCluster::watch_merge(Mastership& mastership, const master_command::StartMerge& job,
                               const MergeResult& result, const Merger::Copy& now) {
  watch_rejected(job, result);
  merges_ahead_ += result.begun_ahead ? 1 : 0;
  const auto shares = mastership.checker->shares_of(job, result.rejected);
  lineage_.merged({.epoch = mastership.master->epoch(),
                   .job = job,
                   .result = result,
                   .now = now,
                   .may_reject = is_stale(mastership),
                   .shares = shares});
}

void ProofCluster::watch_rejected(const master_command::StartMerge& job,
                                  const MergeResult& result) {
  for (const auto& each : job.contributions) {
    const bool rejected = std::ranges::find(result.rejected, each.worker) != result.rejected.end();
    if (rejected) feel(spoilt_, each.run.value);
  }
}

// A merge failed, or its process stopped or died in it: its version is published or not, and may be
// gone on from. What is in the store is held to what would have been merged.
void ProofCluster::watch_torn(Mastership& mastership) {
  const std::uint64_t epoch = mastership.master->epoch();
  const master_command::StartMerge* const job = mastership.master->order();
  ChunkedStore store(std::shared_ptr<KeyValue>(std::shared_ptr<void>(), &server_.map()),
                     scenario_.config.job);
  for (const std::string& key : {weights_key(), checkpoint_key()}) {
    const auto now = read_copy(store, key, epoch);
    if (!now || lineage_.knows(epoch, now->version)) continue;
    if (job == nullptr) {
      lineage_.entered_stage(epoch, *now);
      continue;
    }
    MergeResult result{.version = now->version};
    for (const auto& each : job->contributions) {
      const auto contribution = read_copy(store, contribution_key(epoch, each.worker.value), 0);
      const bool whole = contribution && contribution->version.value == each.run.value;
      if (!whole || !lineage_.is_finite(each.run)) result.rejected.push_back(each.worker);
    }
    const auto shares = mastership.checker->shares_of(*job, result.rejected);
    lineage_.merged({.epoch = epoch,
                     .job = *job,
                     .result = result,
                     .now = *now,
                     .may_reject = is_stale(mastership),
                     .shares = shares});
  }
}

// The record as this master has written it, or nothing.
std::optional<Merger::Copy> ProofCluster::read_copy(RecordStore& store, const std::string& key,
                                                    std::uint64_t epoch) const {
  const auto reader = store.read(key);
  if (!reader || (*reader)->info().epoch != epoch) return std::nullopt;
  const RecordInfo& info = (*reader)->info();
  std::vector<float> record(info.element_count);
  if (!get(store, key, info.model, record)) return std::nullopt;
  Merger::Copy copy{Version{info.version}, {}, {}, info.state};
  const auto count = static_cast<std::ptrdiff_t>(problem_.size());
  copy.weights.assign(record.begin(), record.begin() + count);
  if (record.size() > problem_.size()) {
    copy.histories.emplace_back(record.begin() + count, record.end());
  }
  return copy;
}

void ProofCluster::watch_end(ProofMaster& master, const std::optional<Error>& error) {
  log_.add("master ended", master.node().id().value,
           error ? static_cast<std::uint64_t>(error->code) + 1 : 0);
  if (!error) {
    finished_ = &master;
    return;
  }
  // What began before the faults ended may take its time-out to fail.
  const bool superseded = error->code == ErrorCode::kSuperseded;
  const bool late = world_.queue().now() > scenario_.faults_end + kPatience;
  if (!superseded && (late || !is_transient(error->code))) {
    violations_.report(fmt::format("a master ends with an error: {}", error->message));
  }
  if (any_master_alive()) ensure_master();
  replace_master_soon();
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
    const bool alive = !other.ended() && other.node().process().alive() && other.epoch() != 0;
    if (alive && (newest == nullptr || other.epoch() > newest->epoch())) newest = &other;
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
  for (std::size_t i = 0; i < seats_.size(); ++i) start_worker(i);
  plan_faults();
  while (!over() && world_.queue().step()) {
  }
  if (!violations_.any()) check_end();
  ProofResult result;
  result.hash = log_.hash();
  result.events = handled_;
  for (const auto& each : masters_) {
    if (each->checker) result.merges += each->checker->merges();
  }
  result.merges_ahead = merges_ahead_;
  result.faults = ledger_.table();
  result.violation = violations_.first();
  if (violations_.any()) result.last_events = log_.last();
  return result;
}

void ProofCluster::check_end() {
  if (!finished_) {
    const double seconds = std::chrono::duration<double>(scenario_.deadline).count();
    return violations_.report(
        fmt::format("training does not end within {:.0f} s of virtual time", seconds));
  }
  ProofMaster& master = **finished_;
  if (master.end_state().iteration < scenario_.config.max_iteration) {
    return violations_.report("training ended before its last iteration");
  }
  record::Session state;
  violations_.expect(state.ParseFromString(master.end_state().state),
                     "a state that cannot be read");
  const std::set<std::uint64_t> open(state.data_open().begin(), state.data_open().end());
  lineage_.check_complete(master.epoch(), state.data_fresh(), open);
  const std::vector<float>& weights = master.end_state().weights;
  const double start = problem_.distance(problem_.start());
  if (!(problem_.distance(weights) <= start)) {
    violations_.report(fmt::format("training leads away from the answer: from {:.3f} to {:.3f}",
                                   start, problem_.distance(weights)));
  }
  world_.queue().run_until(world_.queue().now() + kEndTime);
}

ProofResult run_proof(const Scenario& scenario, const ProofParts& parts) {
  ProofCluster cluster(scenario, parts);
  return cluster.run();
}

}  // namespace speedo::sim
