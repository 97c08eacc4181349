#include <speedo/train/master_session.hpp>

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

MasterSession::MasterSession(MasterConfig config, std::unique_ptr<Strategy> strategy)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(strategy))) {}

MasterSession::~MasterSession() = default;

MasterCommands MasterSession::on(const MasterEvent& event) {
  Impl& impl = *impl_;
  if (impl.phase_ == Impl::Phase::kFinished) return {};
  std::visit([&](const auto& e) { impl.handle(e); }, event);
  if (impl.phase_ == Impl::Phase::kGathering && impl.iteration() >= impl.config_.max_iteration) {
    impl.begin_end({fmt::format("nothing to train: iteration {} is not below the maximum, {}",
                                impl.iteration(), impl.config_.max_iteration),
                    std::nullopt, impl.config_.test_interval != 0,
                    impl.config_.snapshot_at_end});
  }
  impl.pump();
  impl.end_if_complete();
  return std::exchange(impl.out_, {});
}

const MasterProgress& MasterSession::progress() const { return impl_->progress_; }

bool MasterSession::finished() const { return impl_->phase_ == Impl::Phase::kFinished; }

MasterSession::Impl::Impl(MasterConfig config_in, std::unique_ptr<Strategy> strategy_in)
    : config_(std::move(config_in)),
      strategy_(std::move(strategy_in)),
      next_run_(config_.first_run),
      version_(config_.first_version),
      tests_(config_.test_interval),
      snapshots_(config_.snapshot_interval) {
  SPEEDO_ASSERT(strategy_ != nullptr);
  config_.workers_min = std::max<std::uint64_t>(config_.workers_min, 1);
  progress_.iteration = config_.start_iteration;
}

void MasterSession::Impl::handle(const master_event::Tick& event) {
  now_ = std::max(event.now, now_.value_or(event.now));
  check_silent_workers();
  check_joining();
}

void MasterSession::Impl::check_silent_workers() {
  if (!open() || config_.worker_timeout.count() == 0) return;
  std::vector<WorkerId> silent;
  for (auto& [id, worker] : workers_) {
    if (!worker.run) continue;
    if (!worker.run_started) worker.run_started = now_;
    if (*now_ - *worker.run_started >= config_.worker_timeout) silent.push_back(id);
  }
  for (const WorkerId id : silent) {
    const Worker& worker = workers_.at(id);
    const std::string reason =
        fmt::format("worker {} ({}) has not answered for {} s (--worker-timeout)", id.value,
                    worker.name, config_.worker_timeout.count());
    note(true, "{}; going on without it", reason);
    refuse(worker.peer, ErrorCode::kTimeout, reason);
    remove(id);
  }
}

// Without enough workers: says so from time to time, and gives up after join_timeout.
void MasterSession::Impl::check_joining() {
  if (!short_of_workers()) {
    waiting_since_.reset();
    waiting_noted_.reset();
    return;
  }
  if (!waiting_since_) waiting_since_ = now_;
  if (config_.join_timeout.count() != 0 && *now_ - *waiting_since_ >= config_.join_timeout) {
    const std::string reason = fmt::format(
        "{} of {} workers joined within {} s (--timeout); start more workers, or check that they "
        "can reach this master",
        progress_.workers_alive, wanted(), config_.join_timeout.count());
    begin_end({reason, Error{ErrorCode::kTimeout, reason}, false, progress_.training});
    return;
  }
  if (!waiting_noted_) {
    waiting_noted_ = waiting_since_;
  } else if (*now_ - *waiting_noted_ >= kWaitingNoteInterval) {
    waiting_noted_ = now_;
    note_waiting();
  }
}

}  // namespace speedo
