// From one stage to the next. When a stage's iterations are merged no new run starts; those under
// way end, are merged if the strategy says so, and what it keeps is discarded. Then the shell makes
// ready for the next stage, and a fresh strategy meets all workers at once.

#include <algorithm>
#include <set>

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

std::uint32_t MasterSession::Impl::stage_index() const {
  return static_cast<std::uint32_t>(stage_ % config_.stages.size());
}

std::uint64_t MasterSession::Impl::test_interval() const {
  return schedule().test_interval.value_or(config_.test_interval);
}

float MasterSession::Impl::rate_scale() const {
  return lr_scale(schedule(), iteration() - progress_.stage_start,
                  std::max<std::uint64_t>(progress_.workers_alive, 1));
}

bool MasterSession::Impl::stage_over() const {
  const std::uint64_t iterations = schedule().iterations;
  return iterations != 0 && iteration() - progress_.stage_start >= iterations;
}

void MasterSession::Impl::set_stage(std::uint64_t stage, std::uint64_t start) {
  stage_ = stage;
  progress_.stage_start = start;
  progress_.stage = stage_index();
  tests_.set_interval(test_interval());
}

void MasterSession::Impl::begin_drain() {
  switching_ = Switching::kDraining;
  std::erase_if(queue_, [](const auto& each) { return std::holds_alternative<WorkerId>(each); });
  held_.clear();
}

bool MasterSession::Impl::drained() const {
  const auto is_working = [](const auto& each) { return each.second.run.has_value(); };
  return switching_ == Switching::kDraining && phase_ == Phase::kTraining && queue_.empty() &&
         std::ranges::none_of(workers_, is_working);
}

bool MasterSession::Impl::enter_next_stage() {
  start_due_jobs();
  if (tests_.due() || snapshots_.due()) return false;
  for (const auto& [worker, report] : reports_) {
    leases_.use_up(report.data);
    progress_.discarded += 1;
  }
  reports_.clear();
  for (auto& [id, worker] : workers_) worker.known = false;
  set_stage(stage_ + 1, iteration());
  strategy_ = make_(schedule().strategy).value();
  switching_ = Switching::kEntering;
  note(false, "stage {} ({}) begins at iteration {}", stage_index(), schedule().strategy.name,
       iteration());
  out_.emplace_back(master_command::EnterStage{stage_index(), encode_state(nullptr)});
  return true;
}

void MasterSession::Impl::handle(const master_event::StageEntered& event) {
  SPEEDO_ASSERT(switching_ == Switching::kEntering);
  switching_ = Switching::kNo;
  version_ = event.version;
  if (phase_ == Phase::kTraining) begin_stage();
}

void MasterSession::Impl::handle(const master_event::StageFailed& event) {
  SPEEDO_ASSERT(switching_ == Switching::kEntering);
  switching_ = Switching::kNo;
  fail(event.error);
}

void MasterSession::Impl::begin_stage() {
  Joined joined;
  for (auto& [id, worker] : workers_) {
    if (!worker.ready) continue;
    worker.known = true;
    joined.workers.push_back(id);
    joined.names.push_back(worker.name);
  }
  note_groups();
  if (!joined.workers.empty()) tell(joined);
}

// A name that was mistyped in the list of groups shows here at the latest.
void MasterSession::Impl::note_groups() {
  const auto& groups = schedule().strategy.groups;
  if (groups.empty()) return;
  std::set<std::string> listed, present;
  for (const auto& group : groups) listed.insert(group.begin(), group.end());
  std::string unlisted, absent;
  for (const auto& [id, worker] : workers_) {
    if (!worker.ready) continue;
    const std::string host = host_of(worker.name);
    present.insert({worker.name, host});
    if (!listed.contains(worker.name) && !listed.contains(host)) unlisted += " " + worker.name;
  }
  for (const std::string& name : listed) {
    if (!present.contains(name)) absent += " " + name;
  }
  if (!absent.empty()) note(true, "groups list workers that are not here:{}", absent);
  if (!unlisted.empty()) note(true, "workers that no group lists:{}", unlisted);
}

}  // namespace speedo
