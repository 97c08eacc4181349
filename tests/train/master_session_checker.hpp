#pragma once

// What must hold of a MasterSession, kept apart from it: follows its events and commands and
// remembers the first violation. Shares no code with the session.

#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <speedo/train/master_session.hpp>

namespace speedo {

class MasterChecker {
 public:
  MasterChecker(const MasterConfig& config, bool sync)
      : config_(config), sync_(sync), iteration_(config.start_iteration),
        next_run_(config.first_run) {}

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
  struct Life {
    std::uint64_t worker = 0;
    bool ready = false;
    std::optional<std::uint64_t> run, current, next;
  };
  struct Contribution {
    std::uint64_t worker = 0, ordinal = 0;
    Fate fate = Fate::kPending;
  };

  void expect(bool holds, const char* what) {
    if (!holds && violation_.empty()) violation_ = what;
  }
  Life* life_of(PeerId peer, std::uint64_t worker) {
    const auto found = lives_.find(peer.value);
    const bool match = found != lives_.end() && found->second.worker == worker;
    return match && !stopping_ ? &found->second : nullptr;
  }
  void end_life(PeerId peer) {
    const auto found = lives_.find(peer.value);
    if (found == lives_.end() || stopping_) return;
    if (found->second.current) free_.insert(*found->second.current);
    if (found->second.next) free_.insert(*found->second.next);
    lives_.erase(found);
  }

  void note(const master_event::Hello& e) { end_life(e.peer); }
  void note(const master_event::Ready& e) {
    Life* life = life_of(e.peer, e.message.worker);
    reply_expected_ = life != nullptr && !life->ready;
    if (life != nullptr) life->ready = true;
  }
  void note(const master_event::Trained& e) {
    Life* life = life_of(e.peer, e.message.worker);
    reply_expected_ = life != nullptr && life->run == e.message.run;
    if (!reply_expected_) return;
    life->run.reset();
    if (std::isfinite(std::bit_cast<float>(e.message.loss_bits))) {
      contributions_[e.message.run] = {e.message.worker, *life->current, Fate::kPending};
    }
    life->current.reset();
  }
  void note(const master_event::Leave& e) {
    if (life_of(e.peer, e.message.worker) != nullptr) end_life(e.peer);
  }
  void note(const master_event::PeerLost& e) { end_life(e.peer); }
  void note(const master_event::Merged& e) {
    bool any = false;
    for (auto& [run, each] : contributions_) {
      if (each.fate != Fate::kMerging) continue;
      each.fate = Fate::kDecided;
      bool rejected = false;
      for (const WorkerId worker : e.rejected) rejected |= worker.value == each.worker;
      if (rejected) continue;
      any = true;
      merged_runs_ += 1;
      expect(merged_ordinals_.insert(each.ordinal).second, "data merged twice");
    }
    merging_ = false;
    if (!any) return;
    iteration_ += 1;
    version_ = e.version.value;
  }
  void note(const master_event::MergeFailed&) { merging_ = false; }
  void note(const master_event::Tested&) { testing_ = false; }
  void note(const master_event::TestFailed&) { testing_ = false; }
  void note(const master_event::SnapshotDone&) { saving_ = false; }
  void note(const master_event::SnapshotFailed&) { saving_ = false; }
  void note(const master_event::StoreLost&) { asked_to_stop_ = true; }
  void note(const master_event::StopRequested&) { asked_to_stop_ = true; }
  void note(const master_event::Tick&) {}

  void obey(const master_command::SendWelcome& c) {
    expect(!stopping_, "welcome after the end");
    expect(lives_.try_emplace(c.peer.value, Life{c.message.worker, false, {}, {}, {}}).second,
           "two lives on one connection");
    expect(workers_.insert(c.message.worker).second, "a worker id given twice");
  }
  void obey(const master_command::SendRefused& c) { end_life(c.peer); }
  void obey(const master_command::SendTrain&) {}
  void obey(const master_command::SendStop&) { stopping_ = true; }
  void obey(const master_command::StartMerge& c) {
    expect(!merging_, "two merges at once");
    expect(!stopping_, "a merge after the end");
    expect(c.iteration == iteration_, "merge at another iteration");
    expect(!c.contributions.empty(), "an empty merge");
    expect(c.mean == sync_, "mean or not");
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
    if (!sync_) return expect(c.contributions.size() == 1, "async merges one");
    expect(c.contributions.size() == pending, "the mean leaves one out");
    for (const auto& [peer, life] : lives_) expect(!life.run, "the mean does not wait for all");
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
  void obey(const master_command::Note& c) {
    expect(c.text.find('\n') == std::string::npos, "a note of two lines");
  }
  void obey(const master_command::Finish& c) {
    finished_ = true;
    if (c.error) error_ = c.error->code;
    expect(!merging_, "finish during a merge");
    expect(c.error || asked_to_stop_ || iteration_ == config_.max_iteration, "finish too early");
    if (c.error || asked_to_stop_ || config_.test_interval == 0) return;
    for (std::uint64_t i = config_.start_iteration + 1; i <= iteration_; ++i) {
      const bool due = i % config_.test_interval == 0 || i == iteration_;
      expect(tests_.contains(i) == due, "a test is missing or too much");
    }
  }

  std::uint64_t take() {
    if (free_.empty()) return fresh_++;
    return free_.extract(free_.begin()).value();
  }
  void check_trains(const std::vector<master_command::SendTrain>& group) {
    expect(!stopping_ && !merging_, "train after the end or during a merge");
    for (const auto& each : group) {
      const auto found = lives_.find(each.peer.value);
      expect(found != lives_.end(), "train for nobody");
      if (found == lives_.end()) return;
      Life& life = found->second;
      expect(life.ready && !life.run, "train for one that is not ready or is at work");
      for (const auto& [run, contribution] : contributions_) {
        expect(contribution.worker != life.worker || contribution.fate == Fate::kDecided,
               "train before the merge of the last contribution");
      }
      expect(each.message.run == next_run_++, "run numbers have a gap");
      expect(each.message.iteration == iteration_, "train at another iteration");
      expect(each.message.version == version_, "train from other weights");
      life.run = each.message.run;
      life.current = life.next ? life.next : take();
      life.next.reset();
      expect(each.message.data_run == *life.current, "another share of the data");
    }
    for (const auto& each : group) {
      Life& life = lives_.at(each.peer.value);
      life.next = take();
      expect(each.message.next_data_run == *life.next, "another share of the data reserved");
    }
  }

  MasterConfig config_;
  bool sync_;
  std::uint64_t iteration_, next_run_;
  std::uint64_t version_ = config_.first_version.value;
  std::uint64_t fresh_ = 0, merged_runs_ = 0;
  std::set<std::uint64_t> free_, merged_ordinals_, workers_, tests_;
  std::map<std::uint64_t, Life> lives_;                  // by connection
  std::map<std::uint64_t, Contribution> contributions_;  // by run
  bool reply_expected_ = true, merging_ = false, testing_ = false, saving_ = false;
  bool stopping_ = false, asked_to_stop_ = false, finished_ = false;
  std::optional<ErrorCode> error_;
  std::string violation_;
};

}  // namespace speedo
