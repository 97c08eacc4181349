#include <speedo/train/master_session.hpp>

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

MasterSession::MasterSession(MasterConfig config, StrategyFactory make)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(make))) {}

MasterSession::~MasterSession() = default;

MasterCommands MasterSession::on(const MasterEvent& event) {
  Impl& impl = *impl_;
  if (impl.phase_ == Impl::Phase::kFinished) return {};
  std::visit([&](const auto& e) { impl.handle(e); }, event);
  if (impl.phase_ == Impl::Phase::kGathering && impl.iteration() >= impl.config_.max_iteration) {
    impl.begin_end({fmt::format("nothing to train: iteration {} is not below the maximum, {}",
                                impl.iteration(), impl.config_.max_iteration),
                    std::nullopt, impl.test_interval() != 0, impl.config_.snapshot_at_end});
  }
  impl.pump();
  impl.erase_records_of_gone();
  impl.end_if_complete();
  return std::exchange(impl.out_, {});
}

std::string MasterSession::save() const { return impl_->encode_state(nullptr); }

Result<void> MasterSession::restore(std::string_view state) { return impl_->restore(state); }

const MasterProgress& MasterSession::progress() const { return impl_->progress_; }

const TrainingId& MasterSession::training() const { return impl_->config_.training; }

bool MasterSession::finished() const { return impl_->phase_ == Impl::Phase::kFinished; }

MasterSession::Impl::Impl(MasterConfig config_in, StrategyFactory make)
    : config_(std::move(config_in)),
      make_(std::move(make)),
      next_run_(config_.first_run),
      first_iteration_(config_.start_iteration),
      leases_(config_.first_data_run),
      version_(config_.first_version),
      snapshots_(config_.snapshot_interval),
      store_absence_(config_.store_timeout) {
  SPEEDO_ASSERT(!config_.stages.empty());
  config_.workers_min = std::max<std::uint64_t>(config_.workers_min, 1);
  config_.workers_start = std::max(config_.workers_start, config_.workers_min);
  progress_.iteration = config_.start_iteration;
  progress_.epoch = config_.epoch;
  set_stage(0, config_.start_iteration);
  strategy_ = make_(schedule().strategy).value();
}

}  // namespace speedo
