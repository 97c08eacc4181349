#pragma once

// What must hold of a MasterSession, kept apart from it: follows its events and commands and
// remembers the first violation. Shares no code with the session.

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <speedo/train/master_session.hpp>

#include "speedo.pb.h"

namespace speedo {

// Knows the strategies async and sync.
class MasterChecker {
 public:
  explicit MasterChecker(const MasterConfig& config)
      : config_(config), iteration_(config.start_iteration), next_run_(config.first_run) {}

  // Instead of the configuration: what the state says that the session is restored from.
  void go_on_from(const std::string& bytes) {
    record::Session state;
    expect(state.ParseFromString(bytes), "a state that cannot be read");
    iteration_ = state.iteration();
    next_run_ = std::max(next_run_, state.next_run());
    next_worker_ = state.next_worker();
    merged_runs_ = state.contributions();
    stage_ = static_cast<std::uint32_t>(state.stage() % config_.stages.size());
    const std::uint64_t length = config_.stages[stage_].iterations;
    stage_start_ = state.stage_start();
    if (length != 0 && iteration_ - stage_start_ >= length) {
      stage_ = next_stage();
      stage_start_ = iteration_;
    }
    fresh_ = state.data_fresh();
    for (std::uint64_t i = 0; i < state.data_fresh(); ++i) used_.insert(i);
    for (const std::uint64_t shard : state.data_open()) used_.erase(shard);
  }

  // Every shard ever given out is used or open, none is both; the iteration is the true one.
  void check_state(const std::string& bytes, std::uint64_t merges = 0) {
    record::Session state;
    expect(state.ParseFromString(bytes), "a state that cannot be read");
    expect(state.iteration() == iteration_ + merges, "a state of another iteration");
    expect(merges != 0 || state.contributions() == merged_runs_, "a state with other counts");
    std::set<std::uint64_t> used = used_;
    for (const auto& [run, each] : contributions_) {
      if (merges != 0 && each.fate == Fate::kMerging) insert(used, each.first, each.count);
    }
    std::set<std::uint64_t> open(state.data_open().begin(), state.data_open().end());
    expect(open.size() == static_cast<std::size_t>(state.data_open_size()), "a shard open twice");
    for (const std::uint64_t shard : used) {
      expect(!open.contains(shard), "a shard is used and open");
    }
    expect(open.size() + used.size() == state.data_fresh(), "a shard is lost or invented");
    expect(open.empty() || *open.rbegin() < state.data_fresh(), "a shard beyond those given out");
  }

  const std::string& violation() const { return violation_; }
  std::uint64_t iteration() const { return iteration_; }
  bool finished() const { return finished_; }
  std::optional<ErrorCode> error() const { return error_; }
  std::uint64_t merged_runs() const { return merged_runs_; }

  // Call before the session handles the event ...
  void see(const MasterEvent& event) {
    reply_expected_ = true;
    std::visit([this](const auto& e) { note(e); }, event);
  }
  // ... and after it, with what it commands.
  void check(const MasterCommands& commands) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      expect(!finished_, "a command after Finish");
      const auto* note_only = std::get_if<master_command::Note>(&commands[i]);
      expect(reply_expected_ || note_only != nullptr, "a message to be ignored had an effect");
      if (std::holds_alternative<master_command::SendTrain>(commands[i])) {
        std::vector<master_command::SendTrain> group;
        while (i < commands.size() &&
               std::holds_alternative<master_command::SendTrain>(commands[i])) {
          group.push_back(std::get<master_command::SendTrain>(commands[i++]));
        }
        --i;
        check_trains(group);
      } else {
        std::visit([this](const auto& c) { obey(c); }, commands[i]);
      }
    }
  }

 private:
  enum class Fate { kPending, kMerging, kDecided };
  struct Incarnation {
    std::uint64_t worker = 0;
    std::uint64_t uuid = 0;
    bool ready = false;
    std::optional<std::uint64_t> run, next;
    std::uint64_t first = 0, count = 0;    // shards of the run
    std::uint64_t merged_run = kNoRun;
  };
  struct Contribution {
    std::uint64_t worker = 0, first = 0, count = 0;
    Fate fate = Fate::kPending;
  };

  void expect(bool holds, const char* what) {
    if (!holds && violation_.empty()) violation_ = what;
  }
  Incarnation* incarnation_of(PeerId peer, std::uint64_t worker) {
    const auto found = incarnations_.find(peer.value);
    const bool match = found != incarnations_.end() && found->second.worker == worker;
    return match && !stopping_ ? &found->second : nullptr;
  }
  void end_incarnation(PeerId peer) {
    if (!stopping_) incarnations_.erase(peer.value);
  }
  static void insert(std::set<std::uint64_t>& set, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) set.insert(first + i);
  }
  bool sync() const { return config_.stages[stage_].strategy.name == "sync"; }
  bool stage_over() const {
    const std::uint64_t iterations = config_.stages[stage_].iterations;
    return iterations != 0 && iteration_ - stage_start_ >= iterations;
  }
  std::uint32_t next_stage() const {
    return static_cast<std::uint32_t>((stage_ + 1) % config_.stages.size());
  }
  void decide(Contribution& each) {
    each.fate = Fate::kDecided;
    for (std::uint64_t i = 0; i < each.count; ++i) {
      expect(used_.insert(each.first + i).second, "data used twice");
    }
  }

  void note(const master_event::Hello& e) {
    uuids_[e.peer.value] = e.message.uuid_low;
    end_incarnation(e.peer);
    if (stopping_ || e.message.uuid_low == 0) return;
    std::erase_if(incarnations_,
                  [&](const auto& each) { return each.second.uuid == e.message.uuid_low; });
  }
  void note(const master_event::Ready& e) {
    Incarnation* incarnation = incarnation_of(e.peer, e.message.worker);
    reply_expected_ = incarnation != nullptr && !incarnation->ready;
    if (incarnation != nullptr) incarnation->ready = true;
  }
  void note(const master_event::Trained& e) {
    Incarnation* incarnation = incarnation_of(e.peer, e.message.worker);
    reply_expected_ = incarnation != nullptr && incarnation->run == e.message.run;
    if (!reply_expected_) return;
    incarnation->run.reset();
    Contribution made{e.message.worker, incarnation->first, incarnation->count, Fate::kPending};
    if (!std::isfinite(std::bit_cast<float>(e.message.loss_bits))) decide(made);
    contributions_[e.message.run] = made;
  }
  void note(const master_event::Beat& e) {
    reply_expected_ = !incarnations_.contains(e.peer.value);
  }
  void note(const master_event::Leave& e) {
    if (incarnation_of(e.peer, e.message.worker) != nullptr) end_incarnation(e.peer);
  }
  void note(const master_event::PeerLost& e) { end_incarnation(e.peer); }
  void note(const master_event::Merged& e) {
    bool any = false;
    for (auto& [run, each] : contributions_) {
      if (each.fate != Fate::kMerging) continue;
      decide(each);
      bool rejected = false;
      for (const WorkerId worker : e.rejected) rejected |= worker.value == each.worker;
      if (rejected) continue;
      any = true;
      merged_runs_ += 1;
      for (auto& [peer, incarnation] : incarnations_) {
        if (incarnation.worker == each.worker) incarnation.merged_run = run;
      }
    }
    merging_ = false;
    if (!any) return;
    iteration_ += 1;
    version_ = e.version.value;
  }
  void note(const master_event::MergeFailed&) { merging_ = false; }
  void note(const master_event::StageEntered& e) {
    entering_ = false;
    version_ = e.version.value;
  }
  void note(const master_event::StageFailed&) { entering_ = false; }
  void note(const master_event::Tested&) { testing_ = false; }
  void note(const master_event::TestFailed&) { testing_ = false; }
  void note(const master_event::SnapshotDone&) { saving_ = false; }
  void note(const master_event::SnapshotRequested&) {}
  void note(const master_event::SnapshotFailed&) { saving_ = false; }
  void note(const master_event::StoreLost&) { asked_to_stop_ = true; }
  void note(const master_event::StoreBack&) {}
  void note(const master_event::StopRequested&) { asked_to_stop_ = true; }
  void note(const master_event::Tick&) {}

  void obey(const master_command::SendWelcome& c) {
    expect(!stopping_, "welcome after the end");
    Incarnation incarnation;
    incarnation.worker = c.message.worker;
    incarnation.uuid = uuids_[c.peer.value];
    expect(incarnations_.try_emplace(c.peer.value, incarnation).second,
           "two incarnations on one connection");
    expect(c.message.worker == next_worker_++, "worker ids have a gap");
    expect(config_.workers_max == 0 || incarnations_.size() <= config_.workers_max,
           "too many workers");
  }
  void obey(const master_command::SendRefused& c) { end_incarnation(c.peer); }
  void obey(const master_command::SendTrain&) {}
  void obey(const master_command::SendStop&) { stopping_ = true; }
  void obey(const master_command::StartMerge& c) {
    expect(!merging_ && !entering_, "two merges at once");
    expect(c.stage == stage_, "a merge of another stage");
    expect(!stopping_, "a merge after the end");
    expect(c.iteration == iteration_, "merge at another iteration");
    expect(!c.contributions.empty(), "an empty merge");
    expect(c.mean == sync(), "mean or not");
    merging_ = true;
    std::size_t pending = 0;
    for (const auto& [run, each] : contributions_) pending += each.fate == Fate::kPending;
    for (const auto& each : c.contributions) {
      const auto found = contributions_.find(each.run.value);
      expect(found != contributions_.end(), "merge of a run that was not reported");
      if (found == contributions_.end()) return;
      expect(found->second.fate == Fate::kPending, "a contribution merged twice");
      expect(found->second.worker == each.worker.value, "merge names another worker");
      found->second.fate = Fate::kMerging;
    }
    check_state(c.state, 1);
    if (!sync()) return expect(c.contributions.size() == 1, "async merges one");
    expect(c.contributions.size() == pending, "the mean leaves one out");
    for (const auto& [peer, incarnation] : incarnations_)
      expect(!incarnation.run, "the mean does not wait for all");
  }
  void obey(const master_command::ExpectMerge& c) {
    expect(!merging_ && !entering_, "a merge expected during another or a change of stages");
    expect(!c.merge.contributions.empty(), "a merge of nothing expected");
  }
  void obey(const master_command::EnterStage& c) {
    expect(!entering_ && !merging_ && !stopping_, "a stage entered during something else");
    expect(stage_over(), "a stage left before its end");
    stage_ = next_stage();
    stage_start_ = iteration_;
    expect(c.stage == stage_, "another stage than the next");
    entering_ = true;
    for (const auto& [peer, incarnation] : incarnations_)
      expect(!incarnation.run, "a run under way between stages");
    for (auto& [run, each] : contributions_) {
      if (each.fate == Fate::kPending) decide(each);
    }
    check_state(c.state);
  }
  void obey(const master_command::StartTest& c) {
    expect(!testing_, "two tests at once");
    expect(c.iteration == iteration_ && !merging_, "a test of other weights");
    expect(tests_.insert(c.iteration).second, "a test repeated");
    testing_ = true;
  }
  void obey(const master_command::StartSnapshot& c) {
    expect(!saving_, "two snapshots at once");
    expect(c.iteration == iteration_ && !merging_, "a snapshot of other weights");
    saving_ = true;
  }
  void obey(const master_command::EraseWorker& c) {
    for (const auto& [peer, incarnation] : incarnations_) {
      expect(incarnation.worker != c.worker.value, "records of a worker that is here are erased");
    }
    for (const auto& [run, each] : contributions_) {
      expect(each.worker != c.worker.value || each.fate == Fate::kDecided || stopping_,
             "records erased that are to be merged");
    }
  }
  void obey(const master_command::StopWaitingForStore&) {}
  void obey(const master_command::Note& c) {
    expect(c.text.find('\n') == std::string::npos, "a note of two lines");
  }
  void obey(const master_command::Finish& c) {
    finished_ = true;
    if (c.error) error_ = c.error->code;
    expect(!merging_, "finish during a merge");
    expect(c.error || asked_to_stop_ || iteration_ == config_.max_iteration, "finish too early");
    if (c.error || asked_to_stop_ || config_.test_interval == 0) return;
    if (config_.stages.size() > 1) return;   // that have intervals of their own
    for (std::uint64_t i = config_.start_iteration + 1; i <= iteration_; ++i) {
      const bool due = i % config_.test_interval == 0 || i == iteration_;
      expect(tests_.contains(i) == due, "a test is missing or too much");
    }
  }

  void check_trains(const std::vector<master_command::SendTrain>& group) {
    expect(!stopping_ && !merging_ && !entering_, "train after the end or during a merge");
    expect(!stage_over(), "train for a stage that is over");
    std::set<std::uint64_t> free = free_shares();
    std::uint64_t alive = 0;
    for (const auto& [peer, incarnation] : incarnations_) alive += incarnation.ready ? 1 : 0;
    expect(alive >= config_.workers_min, "train during a pause");
    for (const auto& each : group) {
      const auto found = incarnations_.find(each.peer.value);
      expect(found != incarnations_.end(), "train for nobody");
      if (found == incarnations_.end()) return;
      Incarnation& incarnation = found->second;
      expect(incarnation.ready && !incarnation.run,
             "train for one that is not ready or is at work");
      for (const auto& [run, contribution] : contributions_) {
        expect(contribution.worker != incarnation.worker || contribution.fate == Fate::kDecided,
               "train before the merge of the last contribution");
      }
      expect(each.message.run == next_run_++, "run numbers have a gap");
      expect(each.message.iteration == iteration_, "train at another iteration");
      expect(each.message.version == version_, "train from other weights");
      expect(each.message.stage == stage_, "train for another stage");
      expect(each.message.merged_run == incarnation.merged_run,
             "another contribution said to be merged");
      incarnation.merged_run = kNoRun;
      if (!incarnation.next) check_shard(each.message.shard, free);
      expect(!incarnation.next || each.message.shard == *incarnation.next,
             "not the data that were reserved");
      expect(each.message.shards >= 1 && each.message.shards <= kShardsPerRunMax,
             "too many shards of the data");
      incarnation.run = each.message.run;
      incarnation.first = each.message.shard;
      incarnation.count = each.message.shards;
      incarnation.next.reset();
    }
    for (const auto& each : group) {
      check_shard(each.message.next_shard, free);
      incarnations_.at(each.peer.value).next = each.message.next_shard;
    }
    check_holdings();
  }
  // Nobody's, though they were given out once. Only known if each reservation is of one shard.
  std::set<std::uint64_t> free_shares() const {
    std::set<std::uint64_t> free;
    for (std::uint64_t i = 0; i < fresh_; ++i) {
      if (!used_.contains(i)) free.insert(i);
    }
    const auto erase = [&](std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) free.erase(first + i);
    };
    for (const auto& [run, each] : contributions_) erase(each.first, each.count);
    for (const auto& [peer, incarnation] : incarnations_) {
      if (incarnation.run) erase(incarnation.first, incarnation.count);
      if (incarnation.next) erase(*incarnation.next, 1);
    }
    return free;
  }
  // What nobody holds is dealt again first, the smallest first.
  void check_shard(std::uint64_t shard, std::set<std::uint64_t>& free) {
    if (config_.shard_by_speed) return;
    if (free.empty()) return expect(shard == fresh_++, "fresh data out of order");
    expect(free.extract(free.begin()).value() == shard, "data left behind");
  }
  // Nobody holds what another holds, or what is used or reported.
  void check_holdings() {
    std::set<std::uint64_t> held = used_;
    const auto take = [&](std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) {
        expect(held.insert(first + i).second, "a shard of the data is held twice");
      }
    };
    for (const auto& [run, each] : contributions_) {
      if (each.fate != Fate::kDecided) take(each.first, each.count);
    }
    for (const auto& [peer, incarnation] : incarnations_) {
      if (incarnation.run) take(incarnation.first, incarnation.count);
      if (incarnation.next) take(*incarnation.next, 1);
    }
  }

  MasterConfig config_;
  std::uint64_t iteration_, next_run_, next_worker_ = 0;
  std::uint64_t version_ = config_.first_version.value;
  std::uint64_t merged_runs_ = 0;
  std::uint32_t stage_ = 0;
  std::uint64_t stage_start_ = config_.start_iteration;
  std::uint64_t fresh_ = config_.first_shard;         // shards from here on were never dealt
  std::set<std::uint64_t> used_, tests_;                 // shards of the data; iterations
  std::map<std::uint64_t, Incarnation> incarnations_;                  // by connection
  std::map<std::uint64_t, std::uint64_t> uuids_;         // of the last Hello, by connection
  std::map<std::uint64_t, Contribution> contributions_;  // by run
  bool reply_expected_ = true, merging_ = false, testing_ = false, saving_ = false;
  bool entering_ = false, stopping_ = false, asked_to_stop_ = false, finished_ = false;
  std::optional<ErrorCode> error_;
  std::string violation_;
};

}  // namespace speedo
