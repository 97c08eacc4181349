#include "sim/check/schedule_checker.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace speedo::sim {
namespace {

class WatchedStrategy : public Strategy {
 public:
  WatchedStrategy(std::unique_ptr<Strategy> strategy, const StrategyOptions& options,
                  Violations& violations, ScheduleChange on_change)
      : strategy_(std::move(strategy)),
        violations_(violations),
        checker_(options, violations),
        on_change_(std::move(on_change)) {}
  ~WatchedStrategy() override { on_change_(nullptr, &checker_); }

  Commands on(const Event& event) override {
    on_change_(&checker_, nullptr);
    checker_.before(event);
    Commands commands = strategy_->on(event);
    checker_.after(event, commands);
    // A session may rely on its strategy, and does not outlive a broken one.
    if (violations_.any()) return {};
    return commands;
  }
  std::string save() const override { return strategy_->save(); }
  Result<void> restore(std::string_view state) override { return strategy_->restore(state); }

 private:
  const std::unique_ptr<Strategy> strategy_;
  const Violations& violations_;
  ScheduleChecker checker_;
  const ScheduleChange on_change_;
};

}  // namespace

std::unique_ptr<Strategy> watch_strategy(std::unique_ptr<Strategy> strategy,
                                         const StrategyOptions& options, Violations& violations,
                                         ScheduleChange on_change) {
  return std::make_unique<WatchedStrategy>(std::move(strategy), options, violations,
                                           std::move(on_change));
}

ScheduleChecker::ScheduleChecker(StrategyOptions options, Violations& violations)
    : options_(std::move(options)), rule_(rule_of(options_.name)), violations_(violations) {}

ScheduleChecker::Rule ScheduleChecker::rule_of(const std::string& name) {
  const StrategyEntry* entry = find_strategy(name);
  const std::string known = entry == nullptr ? name : entry->name;
  if (entry != nullptr && entry->rounds) return Rule::kRounds;
  if (known == "partial-sync") return Rule::kPartialSync;
  if (known == "ssp") return Rule::kSsp;
  if (known == "weedout") return Rule::kWeedout;
  if (known == "grouping") return Rule::kGrouping;
  return Rule::kAtOnce;
}

void ScheduleChecker::expect(bool holds, const char* otherwise) {
  if (!holds) violations_.report(Check::kSchedule, fmt::format("{}: {}", options_.name, otherwise));
}

bool ScheduleChecker::wants_run(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.live && found->second.running;
}

std::vector<WorkerId> ScheduleChecker::take_merge() {
  if (merges_.empty()) return {};
  std::vector<WorkerId> workers = std::move(merges_.front());
  merges_.pop_front();
  return workers;
}

void ScheduleChecker::before(const Event& event) {
  std::visit([this](const auto& each) { note(each); }, event);
}

// A newcomer's clock as the rules give it; its model of the ring grows before it is asked.
void ScheduleChecker::note(const Joined& event) {
  std::uint64_t clock = 0;
  if (rule_ == Rule::kSsp && began_) clock = std::min(fastest(), slowest() + options_.staleness);
  for (std::size_t i = 0; i < event.workers.size(); ++i) {
    const WorkerId worker = event.workers[i];
    expect(!workers_.contains(worker), "a worker joins twice");
    Worker& state = workers_[worker];
    state.clock = clock;
    if (i < event.names.size()) state.name = event.names[i];
    if (rule_ == Rule::kWeedout && began_) {
      ring_.push_front(worker);
      ring_size_ += 1;
    }
  }
  if (!began_) ring_size_ = std::max<std::size_t>(options_.window, event.workers.size());
  began_ = true;
}

void ScheduleChecker::note(const Left& event) {
  const auto found = workers_.find(event.worker);
  if (found == workers_.end()) return;
  found->second.live = found->second.running = false;
  if (!found->second.pending) workers_.erase(found);
  if (rule_ != Rule::kWeedout) return;
  if (!ring_.empty()) ring_.pop_front();
  if (ring_size_ > 0) ring_size_ -= 1;
}

void ScheduleChecker::note_end(WorkerId worker, bool contributed) {
  Worker& state = workers_[worker];
  state.running = false;
  state.pending = contributed;
  failed_ += contributed ? 0 : 1;
  state.clock += 1;
  if (rule_ == Rule::kWeedout) in_time_ = enter_ring(worker);
}

bool ScheduleChecker::enter_ring(WorkerId worker) {
  const bool filling = ring_.size() < ring_size_;
  const bool in_time = filling || std::ranges::find(ring_, worker) != ring_.end();
  if (!filling && !ring_.empty()) ring_.pop_front();
  ring_.push_back(worker);
  return in_time;
}

void ScheduleChecker::after(const Event& event, const Commands& commands) {
  const bool none_ran = std::ranges::none_of(
      workers_, [](const auto& each) { return each.second.running; });
  for (const Command& command : commands) {
    std::visit([this](const auto& each) { obey(each); }, command);
  }
  if (const auto* trained = std::get_if<Trained>(&event);
      trained != nullptr && rule_ != Rule::kRounds && rule_ != Rule::kGrouping) {
    expect(!workers_[trained->worker].pending, "a result is neither merged nor dropped");
  }
  if (rule_ == Rule::kPartialSync && none_ran) check_partial_sync(commands);
  if (rule_ == Rule::kPartialSync && !workers_.empty()) {
    expect(fastest() - slowest() <= options_.max_advance, "the lead is beyond the bound");
  }
  check_all_at_work();
}

// Nobody may wait for ever: somebody has to be at work, and where the rule parks nobody, all.
void ScheduleChecker::check_all_at_work() {
  bool any = false, all = true;
  std::size_t live = 0;
  for (const auto& [id, state] : workers_) {
    if (!state.live) continue;
    live += 1;
    any |= state.running;
    all &= state.running;
  }
  // With an exact number they may wait for others.
  const bool wait_for_others = live < std::max<std::uint64_t>(options_.exact_workers, 1);
  expect(any || wait_for_others, "all live workers wait, for nobody");
  const bool parks_nobody = rule_ == Rule::kAtOnce || rule_ == Rule::kWeedout;
  expect(!parks_nobody || all, "a live worker was left without work");
}

// The end of a catch-up, or the start: all begin anew together.
void ScheduleChecker::check_partial_sync(const Commands& commands) {
  std::size_t live = 0, told = 0;
  for (const auto& [id, state] : workers_) live += state.live;
  for (const Command& command : commands) told += std::holds_alternative<Train>(command);
  if (told != live || live == 0) return;
  for (auto& [id, state] : workers_) {
    state.clock = 1;
    state.counted = true;
  }
}

void ScheduleChecker::decide(WorkerId worker) {
  const auto found = workers_.find(worker);
  const bool pending = found != workers_.end() && found->second.pending;
  expect(pending, "decides on a contribution that is not there, or a second time");
  if (!pending) return;
  found->second.pending = false;
  if (!found->second.live) workers_.erase(found);
}

void ScheduleChecker::obey(const Merge& command) {
  merges_.push_back({command.worker});
  expect(rule_ != Rule::kRounds, "merges one alone");
  expect(rule_ != Rule::kWeedout || in_time_, "merges a sender that is not in the ring");
  decide(command.worker);
}

void ScheduleChecker::obey(const Average& command) {
  merges_.push_back(command.workers);
  expect(rule_ == Rule::kRounds || rule_ == Rule::kGrouping, "takes a mean");
  expect(!command.workers.empty(), "takes a mean of nothing");
  std::size_t pending = 0, running = 0;
  for (const auto& [id, state] : workers_) {
    pending += state.pending;
    running += state.running;
  }
  if (rule_ == Rule::kRounds) {
    expect(running == 0, "the mean does not wait for all");
    expect(pending == command.workers.size(), "the mean leaves one out");
    const std::size_t runs = command.workers.size() + std::exchange(failed_, 0);
    expect(options_.exact_workers == 0 || runs % options_.exact_workers == 0,
           "a round has another number of runs than asked for");
  }
  if (rule_ == Rule::kGrouping && !options_.groups.empty()) {
    for (const WorkerId worker : command.workers) {
      expect(group_of(workers_[worker]) == group_of(workers_[command.workers.front()]),
             "a mean over several groups");
    }
  }
  for (const WorkerId worker : command.workers) decide(worker);
}

void ScheduleChecker::obey(const Discard& command) {
  expect(rule_ == Rule::kWeedout, "drops a result");
  expect(rule_ != Rule::kWeedout || !in_time_, "drops a sender that is in the ring");
  decide(command.worker);
}

void ScheduleChecker::obey(const Train& command) {
  const auto found = workers_.find(command.worker);
  const bool live = found != workers_.end() && found->second.live;
  expect(live, "starts a worker that is not there");
  if (!live) return;
  Worker& state = found->second;
  expect(!state.running, "starts a worker that is at work");
  expect(!state.pending, "starts a worker before its contribution is decided on");
  if (rule_ == Rule::kSsp) check_ssp(command.worker);
  if (rule_ == Rule::kPartialSync && !state.counted) {
    state.clock = fastest();
    state.counted = true;
  }
  state.running = true;
}

void ScheduleChecker::check_ssp(WorkerId worker) {
  expect(workers_.at(worker).clock <= slowest() + options_.staleness,
         "a run begins too far ahead of the slowest");
}

std::uint64_t ScheduleChecker::slowest() const {
  std::uint64_t least = UINT64_MAX;
  for (const auto& [id, state] : workers_) {
    const bool counts = state.live && (rule_ != Rule::kPartialSync || state.counted);
    if (counts) least = std::min(least, state.clock);
  }
  return least == UINT64_MAX ? 0 : least;
}

std::uint64_t ScheduleChecker::fastest() const {
  std::uint64_t most = 0;
  for (const auto& [id, state] : workers_) {
    const bool counts = state.live && (rule_ != Rule::kPartialSync || state.counted);
    if (counts) most = std::max(most, state.clock);
  }
  return most;
}

// By its own name or its host's; those that no group names have one together.
std::size_t ScheduleChecker::group_of(const Worker& worker) const {
  const std::string host = worker.name.substr(0, worker.name.find('/'));
  for (std::size_t i = 0; i < options_.groups.size(); ++i) {
    for (const std::string& name : options_.groups[i]) {
      if (name == worker.name || name == host) return i;
    }
  }
  return options_.groups.size();
}

}  // namespace speedo::sim
