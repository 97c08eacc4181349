#include "sim/check/session_checker.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <speedo/base/limits.hpp>

namespace speedo::sim {

SessionChecker::SessionChecker(const MasterConfig& config, std::string_view state,
                               Lineage& lineage, Violations& violations)
    : config_(config),
      lineage_(lineage),
      violations_(violations),
      shards_(0, !config.shard_by_speed, violations),
      iteration_(config.start_iteration),
      first_iteration_(iteration_),
      stage_start_(0),
      steps_(config.stages.front().update.steps_per_run),
      version_(config.first_version.value),
      next_run_(config.first_run) {
  if (!state.empty()) {
    go_on_from(state);
    return;
  }
  leave_stages_that_are_over();
  follow_steps(0);
}

void SessionChecker::go_on_from(std::string_view bytes) {
  record::Session state;
  if (!state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return expect(kStart, false, "a state that cannot be read");
  }
  iteration_ = first_iteration_ = state.iteration();
  next_run_ = std::max(next_run_, state.next_run());
  next_worker_ = state.next_worker();
  merged_contributions_ = state.contributions();
  stage_ = static_cast<std::uint32_t>(state.stage() % config_.stages.size());
  stage_start_ = state.stage_start();
  leave_stages_that_are_over();
  shards_.go_on_from(state);
  steps_ = state.data_steps();
  follow_steps(state.data_fresh());
  for (const record::Session::Told& each : state.told()) told_before_.insert(each.run());
}

bool SessionChecker::is_stage_over() const {
  const std::uint64_t iterations = config_.stages[stage_].iterations;
  return iterations != 0 && iteration_ - stage_start_ >= iterations;
}

void SessionChecker::leave_stages_that_are_over() {
  while (is_stage_over()) {
    stage_start_ += config_.stages[stage_].iterations;
    stage_ = static_cast<std::uint32_t>((stage_ + 1) % config_.stages.size());
  }
}

void SessionChecker::follow_steps(std::uint64_t fresh, const record::Session* cut) {
  const std::uint64_t steps = config_.stages[stage_].update.steps_per_run;
  if (std::exchange(steps_, steps) == steps) return;
  // The first shards of a cut are those that lie apart.
  if (cut != nullptr) fresh -= static_cast<std::uint64_t>(cut->data_apart_size());
  for (const std::uint64_t shard : shards_.given_up(fresh, cut)) {
    lineage_.consumed(config_.term, shard);
  }
}

SessionChecker::Incarnation* SessionChecker::incarnation_of(PeerId peer, std::uint64_t worker) {
  const auto found = incarnations_.find(peer.value);
  const bool match = found != incarnations_.end() && found->second.worker == worker;
  return match && !stopping_ ? &found->second : nullptr;
}

void SessionChecker::end_incarnation(PeerId peer) {
  if (stopping_) return;
  const auto found = incarnations_.find(peer.value);
  if (found == incarnations_.end()) return;
  shards_.gone(found->second.worker);
  will_not_come(found->second.worker);
  incarnations_.erase(found);
}

void SessionChecker::before(const MasterEvent& event) {
  may_act_ = true;
  std::visit([this](const auto& each) { note(each); }, event);
}

void SessionChecker::after(const MasterCommands& commands) {
  const auto is_train = [](const MasterCommand& each) {
    return std::holds_alternative<master_command::SendTrain>(each);
  };
  for (auto at = commands.begin(); at != commands.end();) {
    expect(kMessages, !finished_, "a command after Finish");
    expect(kMessages, may_act_ || std::holds_alternative<master_command::Note>(*at),
           "a message to be ignored had an effect");
    const auto end = std::find_if_not(at, commands.end(), is_train);
    if (end != at) {
      check_deal({at, end});
      at = end;
    } else {
      std::visit([this](const auto& each) { obey(each); }, *at++);
    }
  }
  check_parked();
}

// Runs that begin together.
void SessionChecker::check_deal(std::span<const MasterCommand> trains) {
  std::vector<ShardChecker::Deal> deals;
  for (const MasterCommand& each : trains) {
    const auto& train = std::get<master_command::SendTrain>(each);
    obey(train);
    const auto found = incarnations_.find(train.peer.value);
    if (found == incarnations_.end()) return;
    deals.push_back({.worker = found->second.worker,
                     .shards = {train.message.shard, train.message.shards},
                     .next = train.message.next_shard,
                     .step = train.message.first_step, .next_step = train.message.next_step,
                     .steps = steps_});
  }
  shards_.dealt(deals);
}

void SessionChecker::note(const master_event::Hello& e) {
  end_incarnation(e.peer);
  const Uuid uuid{e.message.uuid_high, e.message.uuid_low};
  uuids_[e.peer.value] = uuid;
  if (stopping_ || uuid == Uuid{}) return;
  // A process that comes again has given its earlier incarnation up.
  std::vector<PeerId> earlier;
  for (const auto& [peer, incarnation] : incarnations_) {
    if (uuids_[peer] == uuid) earlier.push_back({peer});
  }
  for (const PeerId peer : earlier) end_incarnation(peer);
}

void SessionChecker::note(const master_event::Ready& e) {
  Incarnation* incarnation = incarnation_of(e.peer, e.message.worker);
  may_act_ = incarnation != nullptr && !incarnation->ready;
  if (incarnation != nullptr) incarnation->ready = true;
}

void SessionChecker::note(const master_event::Trained& e) {
  Incarnation* incarnation = incarnation_of(e.peer, e.message.worker);
  may_act_ = incarnation != nullptr && incarnation->run == e.message.run;
  if (!may_act_) return;
  // A replica that is known to differ is sent away, and what it has done comes to nothing.
  const bool is_astray = weights_check_ &&
                         e.message.checked_version == weights_check_->version.value &&
                         e.message.weights_digest != weights_check_->digest;
  if (is_astray) return;
  incarnation->run.reset();
  incarnation->last_reported = e.message.run;
  const Shards shards = shards_.reported(incarnation->worker);
  // Once training is over what workers report is not looked at: their data are open.
  if (training_is_over_ || std::isfinite(std::bit_cast<float>(e.message.loss_bits))) {
    contributions_[e.message.run] = {e.message.worker, e.message.base_version, shards,
                                     Fate::kPending};
    again_.erase(e.message.worker);
  } else {
    shards_.used(shards);
    will_not_come(e.message.worker);
  }
  // Until it is merged the shard may come to nothing: dropped, rejected, or not finite.
  for (std::uint64_t i = 0; i < shards.count; ++i) {
    lineage_.consumed(config_.term, shards.first + i);
  }
}

void SessionChecker::note(const master_event::Beat& e) {
  may_act_ = !incarnations_.contains(e.peer.value);
}

void SessionChecker::note(const master_event::Leave& e) {
  if (incarnation_of(e.peer, e.message.worker) != nullptr) end_incarnation(e.peer);
}

void SessionChecker::note(const master_event::StageEntered& e) {
  expect(kJobs, entering_, "an answer that nobody waits for");
  entering_ = false;
  expect(kPublication, e.version.value > version_, "versions do not grow");
  version_ = e.version.value;
}

void SessionChecker::obey(const master_command::SendWelcome& c) {
  expect(kMembership, !stopping_, "a welcome after the end");
  expect(kMembership, c.message.worker == next_worker_++, "workers' numbers have a gap");
  const auto [at, is_new] = incarnations_.try_emplace(c.peer.value);
  expect(kMembership, is_new, "two incarnations on one connection");
  at->second.worker = c.message.worker;
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
  expect(kOrders, put_off_.empty() || again_.contains(incarnation.worker),
         "a run of another worker before a round is merged that was put off");
  check_seat(c.message.seat);
  next_run_ += 1;
  incarnation.run = c.message.run;
  began_ = true;
}

void SessionChecker::check_train(const Incarnation& incarnation, const TrainMessage& order) const {
  expect(kOrders, incarnation.ready && !incarnation.run,
         "a run for a worker that is not ready, or is at work");
  expect(kOrders, order.run == next_run_, "run numbers have a gap");
  expect(kOrders, order.iteration == iteration_, "a run at another iteration");
  expect(kOrders, order.version == version_, "a run from other weights");
  expect(kOrders, order.stage == stage_, "a run of another stage");
  expect(kOrders, !is_stage_over(), "a run of a stage that is over");
  std::uint64_t alive = 0;
  for (const auto& [peer, each] : incarnations_) alive += each.ready;
  expect(kMembership, alive >= config_.workers_min, "a run with fewer workers than the fewest");
  expect(kOrders, order.shards >= 1 && order.shards <= kShardsPerRunMax,
         "too many shards in a run");
  for (std::uint64_t i = 0; i < order.shards; ++i) {
    expect(kOnce, !lineage_.is_merged(config_.term, order.shard + i),
           "a shard that is merged is given out again");
  }
  for (const auto& [run, each] : contributions_) {
    const bool its = each.worker == incarnation.worker && each.fate == Fate::kMerging;
    expect(kOrders, !its, "a run before the merge of the last contribution");
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
  } else if (order.merged_run != kNoRun) {
    // Of its process, as another worker.
    const bool was_merged = std::ranges::any_of(
        merged_of_, [&](const auto& each) { return each.second == order.merged_run; });
    expect(kOrders, was_merged || told_before_.contains(order.merged_run),
           "a worker that comes back is told of a merge that was not");
  }
}

void SessionChecker::check_state(std::string_view bytes, bool merges) {
  record::Session state;
  const bool is_read = state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  expect(kStart, is_read, "a state that cannot be read");
  expect(kStart, state.iteration() == iteration_ + (merges ? 1 : 0),
         "a state of another iteration");
  std::vector<Shards> merging;
  if (merges) {
    for (const std::uint64_t run : merging_runs_) merging.push_back(contributions_[run].shards);
  }
  shards_.check_state(state, merging, drops_silently());
  if (merges || drops_silently()) return;
  expect(kStart, state.contributions() == merged_contributions_, "a state with other counts");
}

void SessionChecker::obey(const master_command::ExpectMerge& c) {
  std::set<WorkerId> workers;
  for (const auto& each : c.merge.contributions) {
    expect(Check::kMerges, workers.insert(each.worker).second,
           "a merge is expected of one worker twice");
  }
  expect(Check::kMerges, !workers.empty(), "a merge of nothing is expected");
}

void SessionChecker::obey(const master_command::EraseWorker& c) {
  const auto is_its = [&](const auto& each) { return each.second.worker == c.worker.value; };
  expect(kErasure, std::ranges::none_of(incarnations_, is_its),
         "records of a worker that is here are erased");
  expect(kErasure, erased_.insert(c.worker.value).second, "records of a worker erased twice");
}

void SessionChecker::obey(const master_command::EnterStage& c) {
  expect(kJobs, !merging_ && !entering_ && !stopping_, "a new stage during a merge, or at the end");
  for (const auto& [peer, incarnation] : incarnations_) expect(kJobs, !incarnation.run,
                                                 "a new stage while a worker runs");
  expect(kJobs, c.stage < config_.stages.size(), "an unknown stage");
  expect(kJobs, is_stage_over(), "a stage is left before its end");
  entering_ = true;
  leave_stages_that_are_over();
  expect(kJobs, c.stage == stage_, "another stage than the next that has iterations left");
  // What a stage leaves behind unmerged is dropped.
  for (const auto& [run, each] : contributions_) shards_.used(each.shards);
  contributions_.clear();
  record::Session state;
  expect(kStart, state.ParseFromString(c.state), "a state that cannot be read");
  follow_steps(state.data_fresh(), &state);
  check_state(c.state, false);
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
  has_states_ = false;
}

// Of who was asked, those who said so, in order. What is said twice, or of nobody, counts once.
void SessionChecker::obey(const master_command::FinishSnapshot& c) {
  expect(kJobs, config_.snapshot_workers && saving_ && !has_states_,
         "states of no snapshot, or twice");
  has_states_ = true;
  for (std::size_t i = 0; i < c.workers.size(); ++i) {
    expect(kJobs, states_.contains(c.workers[i].value), "a state that nobody saved");
    expect(kJobs, i == 0 || c.workers[i - 1] < c.workers[i], "states out of order");
  }
}

void SessionChecker::obey(const master_command::SendSaveState& c) {
  expect(kJobs, config_.snapshot_workers && c.message.iteration == iteration_ && !merging_,
         "a state of other weights is asked for");
  const auto found = incarnations_.find(c.peer.value);
  expect(kMessages, found != incarnations_.end() && found->second.worker == c.message.worker,
         "a state is asked of nobody");
  const bool is_told = c.message.merged_run != kNoRun;
  const auto merged = merged_of_.find(c.message.worker);
  expect(kMessages, !is_told || (merged != merged_of_.end() &&
                                 merged->second == c.message.merged_run),
         "another run is said to be merged than the worker's last");
  check_open_run(found->second, c.message.open_run);
  asked_.insert(c.message.worker);
}

// A state has the worker's last run exactly if the snapshot does not deal its data out again.
void SessionChecker::check_open_run(const Incarnation& incarnation, std::uint64_t run) const {
  if (drops_silently() || again_.contains(incarnation.worker)) return;
  std::optional<std::uint64_t> open = incarnation.run;
  for (const auto& [reported, each] : contributions_) {
    if (each.worker == incarnation.worker) open = open.value_or(reported);
  }
  expect(kOnce, open.value_or(kNoRun) == run,
         "a state with a run whose data are open, or without one whose data are used");
}

void SessionChecker::note(const master_event::StateSaved& e) {
  if (e.message.code == 0 && asked_.contains(e.message.worker)) states_.insert(e.message.worker);
}

void SessionChecker::end_snapshot() {
  expect(kJobs, !config_.snapshot_workers || has_states_, "a snapshot that waited for no states");
  saving_ = false;
}

void SessionChecker::check_seat(std::uint64_t seat) {
  if (seat == kNoSeat) return;
  expect(kOrders, seat < config_.seats, "a state that there is not");
  expect(kOrders, !erased_seats_.contains(seat), "a state is given that was taken");
  given_seats_.insert(seat);
}

void SessionChecker::obey(const master_command::EraseSeat& c) {
  expect(kErasure, given_seats_.contains(c.seat), "a state is erased that nobody took");
  expect(kErasure, erased_seats_.insert(c.seat).second, "a state erased twice");
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
  if (schedule_ == nullptr || !put_off_.empty()) return;
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

}  // namespace speedo::sim
