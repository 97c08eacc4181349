#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <speedo/train/master_session.hpp>

#include "sim/lineage.hpp"
#include "sim/schedule_checker.hpp"
#include "sim/violations.hpp"

namespace speedo::sim {

// What must hold of one master's session, kept apart from it: follows its events and commands, and
// knows nothing else.
class SessionChecker {
 public:
  // `config`: of the session; `iteration`: that it begins at.
  SessionChecker(const MasterConfig& config, std::uint64_t iteration, std::uint32_t stage,
                 Lineage& lineage, Violations& violations);

  void before(const MasterEvent& event);
  void after(const MasterCommands& commands);
  // The strategy's checker, while there is one.
  void watch_schedule(ScheduleChecker* schedule) { schedule_ = schedule; }

  std::uint64_t iteration() const { return iteration_; }
  std::uint64_t merges() const { return merges_; }
  // Shards of the data that the contributions of a merge were made of, the rejected ones left out.
  std::vector<std::uint64_t> shards_of(const master_command::StartMerge& job,
                                       const std::vector<WorkerId>& rejected) const;

 private:
  using enum Check;
  enum class Fate { kPending, kMerging };
  struct Shards {
    std::uint64_t first = 0, count = 0;
  };
  struct Incarnation {
    std::uint64_t worker = 0;
    bool ready = false;
    std::optional<std::uint64_t> run;
    Shards shards;
    std::optional<std::uint64_t> last_merged;     // run
    std::optional<std::uint64_t> last_reported;
  };
  struct Contribution {
    std::uint64_t worker = 0, base = 0;
    Shards shards;
    Fate fate = Fate::kPending;
  };

  void expect(Check check, bool holds, const char* otherwise) const {
    violations_.expect(check, holds, otherwise);
  }
  Incarnation* incarnation_of(PeerId peer, std::uint64_t worker);
  void end_incarnation(PeerId peer);

  template <class Event>
  void note(const Event&) {}
  void note(const master_event::Hello& e);
  void note(const master_event::Ready& e);
  void note(const master_event::Trained& e);
  void note(const master_event::Leave& e);
  void note(const master_event::PeerLost& e) { end_incarnation(e.peer); }
  void note(const master_event::Merged& e);
  void note(const master_event::MergeFailed&) { merging_ = false; }
  void note(const master_event::StageEntered& e);
  void note(const master_event::StageFailed&) { entering_ = false; }
  void note(const master_event::Tested&) { testing_ = false; }
  void note(const master_event::TestFailed&) { testing_ = false; }
  void note(const master_event::SnapshotDone&) { saving_ = false; }
  void note(const master_event::SnapshotRequested&) {}
  void note(const master_event::SnapshotFailed&) { saving_ = false; }
  void note(const master_event::StoreLost&) { asked_to_stop_ = true; }
  void note(const master_event::StopRequested&) { asked_to_stop_ = true; }

  void obey(const master_command::SendWelcome& c);
  void obey(const master_command::SendRefused& c);
  void obey(const master_command::SendTrain& c);
  void obey(const master_command::SendStop& c);
  void obey(const master_command::StartMerge& c);
  void obey(const master_command::ExpectMerge& c);
  void obey(const master_command::EnterStage& c);
  void obey(const master_command::StartTest& c);
  void obey(const master_command::StartSnapshot& c);
  void obey(const master_command::EraseWorker& c);
  void obey(const master_command::StopWaitingForStore&) {}
  void obey(const master_command::Note& c);
  void obey(const master_command::Finish& c);

  void check_train(const Incarnation& incarnation, const TrainMessage& order) const;
  void check_shard(std::uint64_t shard) const;
  void check_merged_run(const Incarnation& incarnation, const TrainMessage& order) const;
  void check_weight(const master_command::StartMerge::Contribution& each,
                    const Contribution& contribution, std::uint32_t stage) const;
  void check_tests() const;
  void check_parked() const;

  const MasterConfig config_;
  Lineage& lineage_;
  Violations& violations_;
  ScheduleChecker* schedule_ = nullptr;
  const std::uint64_t first_iteration_;
  std::uint64_t iteration_, stage_, version_, next_run_, merges_ = 0;
  using Uuid = std::pair<std::uint64_t, std::uint64_t>;
  std::set<std::uint64_t> workers_, tests_;
  std::set<std::uint64_t> erased_;                       // workers whose records are gone
  std::map<std::uint64_t, Uuid> uuids_;                  // by connection
  std::map<std::uint64_t, Incarnation> incarnations_;                  // by connection
  std::map<std::uint64_t, Contribution> contributions_;  // by run
  std::map<std::uint64_t, std::uint64_t> merged_of_;     // worker: its last merged run
  std::vector<std::uint64_t> merging_runs_;
  bool merging_ = false, entering_ = false, testing_ = false, saving_ = false, began_ = false;
  bool stopping_ = false, asked_to_stop_ = false, finished_ = false;
};

}  // namespace speedo::sim
