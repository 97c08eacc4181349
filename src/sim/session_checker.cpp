#include "sim/session_checker.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <speedo/base/limits.hpp>

namespace speedo::sim {

SessionChecker::SessionChecker(const MasterConfig& config, std::uint64_t iteration,
                               std::uint32_t stage, Lineage& lineage, Violations& violations)
    : config_(config),
      lineage_(lineage),
      violations_(violations),
      first_iteration_(iteration),
      iteration_(iteration),
      stage_(stage),
      version_(config.first_version.value),
      next_run_(config.first_run) {}

SessionChecker::Incarnation* SessionChecker::incarnation_of(PeerId peer, std::uint64_t worker) {
  const auto found = incarnations_.find(peer.value);
  const bool match = found != incarnations_.end() && found->second.worker == worker;
  return match && !stopping_ ? &found->second : nullptr;
}

void SessionChecker::end_incarnation(PeerId peer) {
  if (!stopping_) incarnations_.erase(peer.value);
}

void SessionChecker::before(const MasterEvent& event) {
  std::visit([this](const auto& each) { note(each); }, event);
}

void SessionChecker::after(const MasterCommands& commands) {
  for (const MasterCommand& command : commands) {
    expect(kMessages, !finished_, "a command after Finish");
    std::visit([this](const auto& each) { obey(each); }, command);
  }
  check_parked();
}

void SessionChecker::note(const master_event::Hello& e) {
  end_incarnation(e.peer);
  uuids_[e.peer.value] = {e.message.uuid_high, e.message.uuid_low};
}

void SessionChecker::note(const master_event::Ready& e) {
  if (Incarnation* incarnation = incarnation_of(e.peer, e.message.worker))
    incarnation->ready = true;
}

void SessionChecker::note(const master_event::Trained& e) {
  Incarnation* incarnation = incarnation_of(e.peer, e.message.worker);
  if (incarnation == nullptr || incarnation->run != e.message.run) return;
  incarnation->run.reset();
  incarnation->last_reported = e.message.run;
  const bool finite = std::isfinite(std::bit_cast<float>(e.message.loss_bits));
  if (finite) {
    contributions_[e.message.run] = {e.message.worker, e.message.base_version, incarnation->shards,
                                     Fate::kPending};
  }
  // Until it is merged the shard may come to nothing: dropped, rejected, or not finite.
  for (std::uint64_t i = 0; i < incarnation->shards.count; ++i) {
    lineage_.consumed(config_.term, incarnation->shards.first + i);
  }
}

void SessionChecker::note(const master_event::Leave& e) {
  if (incarnation_of(e.peer, e.message.worker) != nullptr) end_incarnation(e.peer);
}

void SessionChecker::note(const master_event::Merged& e) {
  bool any = false;
  for (const std::uint64_t run : merging_runs_) {
    const Contribution each = contributions_[run];
    contributions_.erase(run);
    if (std::ranges::find(e.rejected, WorkerId{each.worker}) != e.rejected.end()) continue;
    any = true;
    merged_of_[each.worker] = run;
  }
  merging_runs_.clear();
  merging_ = false;
  if (!any) return expect(kPublication, e.version.value == version_,
                          "a merge of nothing made a version");
  iteration_ += 1;
  merges_ += 1;
  expect(kPublication, e.version.value > version_, "versions do not grow");
  version_ = e.version.value;
}

void SessionChecker::note(const master_event::StageEntered& e) {
  expect(kJobs, entering_, "an answer that nobody waits for");
  entering_ = false;
  expect(kPublication, e.version.value > version_, "versions do not grow");
  version_ = e.version.value;
}

void SessionChecker::obey(const master_command::SendWelcome& c) {
  expect(kMembership, !stopping_, "a welcome after the end");
  expect(kMembership, workers_.insert(c.message.worker).second, "a worker's number given twice");
  // A process that comes again has given its earlier incarnation up.
  std::erase_if(incarnations_, [&](const auto& each) {
    return uuids_[each.first] == uuids_[c.peer.value];
  });
  incarnations_[c.peer.value] = Incarnation{c.message.worker, false, {}, {}, {}, {}};
  expect(kMembership, c.message.term == config_.term, "a welcome in another master's name");
  const bool full = config_.workers_max != 0 && incarnations_.size() > config_.workers_max;
  expect(kMembership, !full, "more workers than the most");
}

void SessionChecker::obey(const master_command::SendRefused& c) {
  expect(kMessages, c.message.reason.size() <= kTextMax, "a message too long");
  end_incarnation(c.peer);
}

void SessionChecker::obey(const master_command::SendStop& c) {
  expect(kMessages, c.message.reason.size() <= kTextMax, "a message too long");
  stopping_ = true;
}

void SessionChecker::obey(const master_command::SendTrain& c) {
  expect(kOrders, !stopping_ && !merging_ && !entering_,
         "a run begins at the end or during a merge");
  const auto found = incarnations_.find(c.peer.value);
  if (found == incarnations_.end()) return expect(kOrders, false, "a run for nobody");
  Incarnation& incarnation = found->second;
  check_train(incarnation, c.message);
  check_merged_run(incarnation, c.message);
  next_run_ = c.message.run + 1;
  incarnation.run = c.message.run;
  incarnation.shards = {c.message.shard, c.message.shards};
  began_ = true;
}

void SessionChecker::check_train(const Incarnation& incarnation, const TrainMessage& order) const {
  expect(kOrders, incarnation.ready && !incarnation.run,
         "a run for a worker that is not ready, or is at work");
  expect(kOrders, order.run >= next_run_, "run numbers do not grow");
  expect(kOrders, order.iteration == iteration_, "a run at another iteration");
  expect(kOrders, order.version == version_, "a run from other weights");
  expect(kOrders, order.stage == stage_, "a run of another stage");
  std::uint64_t alive = 0;
  for (const auto& [peer, each] : incarnations_) alive += each.ready;
  expect(kMembership, alive >= config_.workers_min, "a run with fewer workers than the fewest");
  expect(kOrders, order.shards >= 1 && order.shards <= kShardsPerRunMax,
         "too many shards in a run");
  for (std::uint64_t i = 0; i < order.shards; ++i) check_shard(order.shard + i);
  for (const auto& [run, each] : contributions_) {
    const bool its = each.worker == incarnation.worker && each.fate == Fate::kMerging;
    expect(kOrders, !its, "a run before the merge of the last contribution");
  }
}

// Held by nobody else, and not merged.
void SessionChecker::check_shard(std::uint64_t shard) const {
  expect(kOnce, !lineage_.is_merged(config_.term, shard),
         "a shard that is merged is given out again");
  for (const auto& [peer, incarnation] : incarnations_) {
    if (!incarnation.run) continue;
    const bool held = shard >= incarnation.shards.first &&
                      shard < incarnation.shards.first + incarnation.shards.count;
    expect(kOnce, !held, "a shard given to two workers");
  }
}

void SessionChecker::check_merged_run(const Incarnation& incarnation,
                                      const TrainMessage& order) const {
  const auto merged = merged_of_.find(incarnation.worker);
  const bool last_merged =
      merged != merged_of_.end() && incarnation.last_reported == merged->second;
  if (last_merged) {
    expect(kOrders, order.merged_run == merged->second, "a worker is not told that it was merged");
  } else if (incarnation.last_reported) {
    expect(kOrders, order.merged_run != *incarnation.last_reported,
           "a worker is told of a merge that was not");
  }
}

void SessionChecker::obey(const master_command::StartMerge& c) {
  expect(kMerges, !merging_ && !entering_, "two merges at once");
  expect(kMerges, !stopping_, "a merge after the end");
  expect(kMerges, c.iteration == iteration_, "a merge at another iteration");
  expect(kMerges, c.stage == stage_, "a merge of another stage");
  expect(kMerges, !c.contributions.empty(), "an empty merge");
  expect(kMessages, c.state.size() < kPrototxtBytesMax, "a state without bounds");
  merging_ = true;
  std::vector<WorkerId> workers;
  for (const auto& each : c.contributions) workers.push_back(each.worker);
  const bool is_ordered = schedule_ == nullptr || schedule_->take_merge() == workers;
  expect(kMerges, is_ordered, "not the merge that the schedule has ordered");
  for (const auto& each : c.contributions) {
    const auto found = contributions_.find(each.run.value);
    if (found == contributions_.end()) return expect(kMerges, false,
                                                     "a merge of what was not reported");
    expect(kOnce, found->second.fate == Fate::kPending, "a contribution is merged twice");
    expect(kMerges, found->second.worker == each.worker.value, "a merge names another worker");
    expect(kErasure, !erased_.contains(each.worker.value), "a merge of records that were erased");
    check_weight(each, found->second, c.stage);
    found->second.fate = Fate::kMerging;
    merging_runs_.push_back(each.run.value);
  }
}

void SessionChecker::obey(const master_command::ExpectMerge& c) {
  std::set<WorkerId> workers;
  for (const auto& each : c.merge.contributions) {
    expect(Check::kMerges, workers.insert(each.worker).second,
           "a merge is expected of one worker twice");
  }
  expect(Check::kMerges, !workers.empty(), "a merge of nothing is expected");
}

void SessionChecker::check_weight(const master_command::StartMerge::Contribution& each,
                                  const Contribution& contribution, std::uint32_t stage) const {
  const bool weighted = config_.stages[stage].weight_by_staleness;
  const auto age = static_cast<float>(version_ - std::min(version_, contribution.base));
  const float shards = static_cast<float>(contribution.shards.count);
  if (weighted) {
    expect(kMerges, std::abs(each.weight - 1.0F / (1.0F + age)) < 1e-6F,
           "not the weight of its staleness");
  } else if (shards == 1.0F && !config_.shard_by_speed) {
    expect(kMerges, each.weight == 1.0F, "a weight that nobody asked for");
  }
}

void SessionChecker::obey(const master_command::EraseWorker& c) {
  const auto is_its = [&](const auto& each) { return each.second.worker == c.worker.value; };
  expect(kErasure, std::ranges::none_of(incarnations_, is_its),
         "records of a worker that is here are erased");
  expect(kErasure, erased_.insert(c.worker.value).second, "records of a worker erased twice");
}

void SessionChecker::obey(const master_command::EnterStage& c) {
  expect(kJobs, !merging_ && !entering_, "a new stage during a merge");
  for (const auto& [peer, incarnation] : incarnations_) expect(kJobs, !incarnation.run,
                                                 "a new stage while a worker runs");
  expect(kJobs, c.stage < config_.stages.size(), "an unknown stage");
  entering_ = true;
  stage_ = c.stage;
}

void SessionChecker::obey(const master_command::StartTest& c) {
  expect(kJobs, !testing_, "two tests at once");
  expect(kJobs, c.iteration == iteration_ && !merging_, "a test of other weights");
  expect(kJobs, tests_.insert(c.iteration).second, "a test repeated");
  testing_ = true;
}

void SessionChecker::obey(const master_command::StartSnapshot& c) {
  expect(kJobs, !saving_, "two snapshots at once");
  expect(kJobs, c.iteration == iteration_ && !merging_, "a snapshot of other weights");
  saving_ = true;
}

void SessionChecker::obey(const master_command::Note& c) {
  expect(kMessages, c.text.find('\n') == std::string::npos && c.text.size() <= kTextMax,
         "a note too long");
}

void SessionChecker::obey(const master_command::Finish& c) {
  finished_ = true;
  // A master that lost its job cannot finish the merge either.
  const bool superseded = c.error && c.error->code == ErrorCode::kSuperseded;
  expect(kProgress, !merging_ || superseded, "the end comes during a merge");
  expect(kProgress, c.error || asked_to_stop_ || iteration_ >= config_.max_iteration,
         "it ends too early");
  if (!c.error && !asked_to_stop_) check_tests();
  expect(kProgress, iteration_ <= std::max(config_.max_iteration, iteration_ - merges_),
         "it ends too late");
}

// Each test that was due took place, and no other; a master that ends early leaves some out.
void SessionChecker::check_tests() const {
  if (config_.stages.size() > 1 || config_.test_interval == 0) return;
  for (std::uint64_t i = first_iteration_ + 1; i <= iteration_; ++i) {
    const bool due = i % config_.test_interval == 0 || i == iteration_;
    expect(kJobs, tests_.contains(i) == due, "a test is missing, or too much");
  }
}

// A ready worker runs, or the schedule has parked it, or training waits for something as a whole.
void SessionChecker::check_parked() const {
  if (!began_ || stopping_ || finished_ || merging_ || entering_ || testing_ || saving_) return;
  std::uint64_t ready = 0, running = 0;
  for (const auto& [peer, incarnation] : incarnations_) {
    ready += incarnation.ready;
    running += incarnation.run.has_value();
  }
  if (ready == 0 || ready < config_.workers_min) return;
  expect(kProgress, running > 0, "no worker runs, though nothing is waited for");
  if (schedule_ == nullptr) return;
  // What the strategy orders while runs of a stage that is over are waited for is not for now.
  const bool switching = config_.stages.size() > 1;
  if (switching) return;
  for (const auto& [peer, incarnation] : incarnations_) {
    const bool forgotten =
        incarnation.ready && !incarnation.run && schedule_->wants_run(WorkerId{incarnation.worker});
    expect(kProgress, !forgotten,
           "a ready worker was told to train by the schedule, and not by the session");
  }
}

std::vector<std::uint64_t> SessionChecker::shards_of(
    const master_command::StartMerge& job, const std::vector<WorkerId>& rejected) const {
  std::vector<std::uint64_t> shards;
  for (const auto& each : job.contributions) {
    const auto found = contributions_.find(each.run.value);
    const bool out = std::ranges::find(rejected, each.worker) != rejected.end();
    if (out || found == contributions_.end()) continue;
    for (std::uint64_t i = 0; i < found->second.shards.count; ++i) {
      shards.push_back(found->second.shards.first + i);
    }
  }
  return shards;
}

}  // namespace speedo::sim
