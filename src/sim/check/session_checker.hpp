#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <speedo/train/master_session.hpp>

#include "sim/check/lineage.hpp"
#include "sim/check/schedule_checker.hpp"
#include "sim/check/shard_checker.hpp"
#include "sim/check/violations.hpp"

namespace speedo::sim {

// What must hold of one master's session, kept apart from it: follows its events and commands, and
// knows nothing else.
class SessionChecker {
 public:
  // `config`: of the session; `state`: that it was restored from, if it was, else empty.
  SessionChecker(const MasterConfig& config, std::string_view state, Lineage& lineage,
                 Violations& violations);

  void before(const MasterEvent& event);
  void after(const MasterCommands& commands);
  // The strategy's checker, while there is one.
  void watch_schedule(ScheduleChecker* schedule) { schedule_ = schedule; }

  // What the session would save now, beside that which its commands carry.
  void check_state(std::string_view state) { check_state(state, false); }

  std::uint64_t iteration() const { return iteration_; }
  std::uint64_t merges() const { return merges_; }
  std::uint64_t merged_contributions() const { return merged_contributions_; }
  bool finished() const { return finished_; }
  // Shards of the data that the contributions of a merge were made of, the rejected ones left out.
  std::vector<std::uint64_t> shards_of(const master_command::StartMerge& job,
                                       const std::vector<WorkerId>& rejected) const;

 private:
  using enum Check;
  using Shards = ShardChecker::Range;
  enum class Fate { kPending, kMerging };
  struct Incarnation {
    std::uint64_t worker = 0;
    bool ready = false;
    std::optional<std::uint64_t> run;
    std::optional<std::uint64_t> last_reported;   // run
  };
  struct Contribution {
    std::uint64_t worker = 0, base = 0;
    Shards shards;
    Fate fate = Fate::kPending;
  };

  void expect(Check check, bool holds, const char* otherwise) const {
    violations_.expect(check, holds, otherwise);
  }
  void go_on_from(std::string_view state);
  Incarnation* incarnation_of(PeerId peer, std::uint64_t worker);
  void end_incarnation(PeerId peer);
  bool is_stage_over() const;
  void leave_stages_that_are_over();
  // `cut`: as in ShardChecker::given_up().
  void follow_steps(std::uint64_t fresh, const record::Session* cut = nullptr);

  template <class Event>
  void note(const Event&) {}
  void note(const master_event::Hello& e);
  void note(const master_event::Ready& e);
  void note(const master_event::Trained& e);
  void note(const master_event::Beat& e);
  void note(const master_event::Leave& e);
  void note(const master_event::PeerLost& e) { end_incarnation(e.peer); }
  void note(const master_event::Merged& e);
  void note_put_off(const master_event::Merged& e);
  void not_consumed(const Shards& shards);
  bool has_to_train_again(std::uint64_t worker) const;
  void will_not_come(std::uint64_t worker);
  void note(const master_event::MergeFailed&) { merging_ = false; }
  void note(const master_event::StageEntered& e);
  void note(const master_event::StageFailed&) { entering_ = false; }
  void note(const master_event::Tested&) { testing_ = false; }
  void note(const master_event::TestFailed&) { testing_ = false; }
  void note(const master_event::SnapshotDone&) { end_snapshot(); }
  void note(const master_event::SnapshotRequested&) {}
  void note(const master_event::SnapshotFailed&) { saving_ = false; }
  void note(const master_event::StateSaved& e);
  void end_snapshot();
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
  void obey(const master_command::FinishSnapshot& c);
  void obey(const master_command::SendSaveState& c);
  void obey(const master_command::EraseWorker& c);
  void obey(const master_command::EraseSeat& c);
  void obey(const master_command::StopWaitingForStore&) { training_is_over_ = true; }
  void obey(const master_command::Note& c);
  void obey(const master_command::Finish& c);

  void check_deal(std::span<const MasterCommand> trains);
  void check_train(const Incarnation& incarnation, const TrainMessage& order) const;
  void check_state(std::string_view state, bool merges);
  void check_merged_run(const Incarnation& incarnation, const TrainMessage& order) const;
  void check_weight(const master_command::StartMerge& merge,
                    const master_command::StartMerge::Contribution& each,
                    const Contribution& contribution) const;
  // Whether the schedule may drop contributions without saying so.
  bool drops_silently() const { return config_.stages[stage_].strategy.name == "weedout"; }
  void check_open_run(const Incarnation& incarnation, std::uint64_t run) const;
  void check_seat(std::uint64_t seat);
  void check_tests() const;
  void check_parked() const;

  const MasterConfig config_;
  Lineage& lineage_;
  Violations& violations_;
  ScheduleChecker* schedule_ = nullptr;
  ShardChecker shards_;
  std::uint64_t iteration_, first_iteration_, stage_start_;
  std::uint64_t steps_;  // of a shard
  std::uint64_t version_, next_run_;
  std::uint64_t next_worker_ = 0, merges_ = 0, merged_contributions_ = 0;
  std::uint32_t stage_ = 0;
  using Uuid = std::pair<std::uint64_t, std::uint64_t>;
  std::set<std::uint64_t> tests_;                        // iterations
  std::set<std::uint64_t> erased_;                       // workers whose records are gone
  std::map<std::uint64_t, Uuid> uuids_;                  // by connection
  std::map<std::uint64_t, Incarnation> incarnations_;    // by connection
  std::map<std::uint64_t, Contribution> contributions_;  // by run
  std::map<std::uint64_t, std::uint64_t> merged_of_;     // worker: its last merged run
  std::set<std::uint64_t> told_before_;                  // runs, by the state it began with
  std::optional<WeightsCheck> weights_check_;
  std::vector<std::uint64_t> merging_runs_;
  // Of a merge that was put off: its workers, and those whose runs are done again for it.
  std::vector<WorkerId> put_off_;
  std::set<std::uint64_t> again_;
  bool waits_for_lost_ = false;  // the merge under way
  std::set<std::uint64_t> given_seats_, erased_seats_;
  std::set<std::uint64_t> asked_, states_;  // workers
  bool has_states_ = false;  // FinishSnapshot was said
  bool merging_ = false, entering_ = false, testing_ = false, saving_ = false, began_ = false;
  bool training_is_over_ = false, stopping_ = false, asked_to_stop_ = false, finished_ = false;
  bool may_act_ = true;  // not if the event just seen is to be ignored
};

}  // namespace speedo::sim
