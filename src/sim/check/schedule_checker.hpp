#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <speedo/train/strategy.hpp>

#include "sim/check/violations.hpp"

namespace speedo::sim {

// What must hold of a strategy, by small models of its rule that share nothing with it.
class ScheduleChecker {
 public:
  ScheduleChecker(StrategyOptions options, Violations& violations);

  void before(const Event& event);
  void after(const Event& event, const Commands& commands);
  // Told to train, and not heard of since.
  bool wants_run(WorkerId worker) const;
  // The next merge that it has ordered and that was not taken: its workers; none if there is none.
  std::vector<WorkerId> take_merge();

 private:
  enum class Rule { kAtOnce, kRounds, kPartialSync, kSsp, kWeedout, kGrouping };
  struct Worker {
    bool live = true, running = false;
    bool pending = false;       // a contribution not yet decided on
    bool counted = false;       // partial-sync: takes part in the lead
    std::uint64_t clock = 0;    // runs finished
    std::string name;
  };

  static Rule rule_of(const std::string& name);
  void expect(bool holds, const char* otherwise);
  void note(const Joined& event);
  void note(const Left& event);
  void note(const Trained& event) { note_end(event.worker, true); }
  void note(const Failed& event) { note_end(event.worker, false); }
  void note_end(WorkerId worker, bool contributed);
  void obey(const Merge& command);
  void obey(const Average& command);
  void obey(const Discard& command);
  void obey(const Train& command);
  void decide(WorkerId worker);
  bool enter_ring(WorkerId worker);

  void check_all_at_work();
  void check_partial_sync(const Commands& commands);
  void check_ssp(WorkerId worker);
  std::uint64_t slowest() const;
  std::uint64_t fastest() const;
  std::size_t group_of(const Worker& worker) const;

  const StrategyOptions options_;
  const Rule rule_;
  Violations& violations_;
  std::map<WorkerId, Worker> workers_;
  std::deque<std::vector<WorkerId>> merges_;  // ordered, not taken
  bool began_ = false;
  std::size_t failed_ = 0;  // runs since the last mean
  // Weed-out.
  std::deque<WorkerId> ring_;
  std::size_t ring_size_ = 0;
  bool in_time_ = true;
};

// The strategy that a factory makes, watched. `on_change` is told which checker is at work, and
// which one is gone.
using ScheduleChange = std::function<void(ScheduleChecker* at_work, ScheduleChecker* gone)>;
std::unique_ptr<Strategy> watch_strategy(std::unique_ptr<Strategy> strategy,
                                         const StrategyOptions& options, Violations& violations,
                                         ScheduleChange on_change);

}  // namespace speedo::sim
