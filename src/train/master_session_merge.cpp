// Merges: weights of contributions, what is counted.

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

void MasterSession::Impl::start_merge() {
  MergeInFlight merge{{next_merge_++}, std::get<MergeOrder>(std::move(queue_.front()))};
  queue_.pop_front();
  master_command::StartMerge command{merge.id,      iteration(),   {},
                                     merge.order.mean, stage_index(), rate_scale(),
                                     encode_state(&merge.order)};
  for (const Report& report : merge.order.reports) {
    command.contributions.push_back({report.worker, report.run, weight_of(report, merge.order)});
  }
  in_flight_ = std::move(merge);
  out_.emplace_back(std::move(command));
}

// Updates merged since the weights that the contribution was computed from.
std::uint64_t MasterSession::Impl::staleness(const Report& report) const {
  return version_ > report.base ? version_.value - report.base.value : 0;
}

// A mean divides by the number of contributions: those of more shares count for as many, so that it
// is the mean over samples. Elastic steps are summed, and a worker takes back just what it gave.
float MasterSession::Impl::weight_of(const Report& report, const MergeOrder& merge) const {
  double weight = report.weight;
  if (schedule().weight_by_staleness) weight /= 1.0 + static_cast<double>(staleness(report));
  if (merge.mean && !is_elastic(schedule().update.kind)) {
    std::uint64_t shares = 0;
    for (const Report& each : merge.reports) shares += each.data.count;
    weight *= static_cast<double>(report.data.count * merge.reports.size()) /
              static_cast<double>(shares);
  }
  return static_cast<float>(weight);
}

void MasterSession::Impl::handle(const master_event::Merged& event) {
  SPEEDO_ASSERT(in_flight_.has_value());
  SPEEDO_ASSERT(in_flight_->id == event.merge);
  std::vector<Report> merged;
  std::vector<RunId> rejected;
  for (const Report& report : in_flight_->order.reports) {
    leases_.use_up(report.data);
    if (std::ranges::find(event.rejected, report.worker) == event.rejected.end()) {
      merged.push_back(report);
      const auto worker = workers_.find(report.worker);
      if (worker != workers_.end()) {
        worker->second.merged_run = report.run.value;
        worker->second.merged_weight = weight_of(report, in_flight_->order);
      }
      continue;
    }
    rejected.push_back(report.run);
    note(true, "the contribution of worker {} (run {}) is not finite, missing or corrupt; left out",
         report.worker.value, report.run.value);
  }
  in_flight_.reset();
  if (!merged.empty()) count_merged(merged, event.version);
  count_rejected(rejected);
  if (!open()) return;
  if (iteration() >= config_.max_iteration) {
    return begin_end({fmt::format("training is over: iteration {}", iteration()), std::nullopt,
                      test_interval() != 0, config_.snapshot_at_end});
  }
  if (stage_over() && switching_ == Switching::kNo) begin_drain();
}

// One iteration, whatever the number of contributions.
void MasterSession::Impl::count_merged(const std::vector<Report>& merged, Version version) {
  not_finite_in_row_ = 0;
  double loss_sum = 0.0;
  for (const Report& report : merged) {
    loss_sum += report.loss;
    progress_.samples += report.samples;
    progress_.staleness_sum += static_cast<double>(staleness(report));
  }
  progress_.merges += 1;
  progress_.contributions += merged.size();
  progress_.last_loss = static_cast<float>(loss_sum / static_cast<double>(merged.size()));
  progress_.iteration += 1;
  version_ = version;
  tests_.reach(iteration());
  snapshots_.reach(iteration());
}

// A store that lost its data takes with it the contributions of all runs then under way. So those
// that were ordered before the last rejection that counted are no further sign of divergence.
void MasterSession::Impl::count_rejected(const std::vector<RunId>& runs) {
  std::uint64_t counted = 0;
  for (const RunId run : runs) {
    if (run.value < rejected_before_) continue;
    rejected_before_ = next_run_;
    counted += 1;
  }
  progress_.rejected += runs.size();
  count_not_finite(counted);
}

void MasterSession::Impl::count_not_finite(std::uint64_t runs) {
  not_finite_in_row_ += runs;
  if (!open() || not_finite_in_row_ < kNonFiniteRunsMax) return;
  const std::string reason = fmt::format(
      "training diverged: {} runs in a row without a finite loss and contribution at iteration {}; "
      "lower base_lr, set clip_gradients or check the data",
      not_finite_in_row_, iteration());
  begin_end({reason, Error{ErrorCode::kNotFinite, reason}, false, false});
}

void MasterSession::Impl::handle(const master_event::MergeFailed& event) {
  SPEEDO_ASSERT(in_flight_.has_value());
  SPEEDO_ASSERT(in_flight_->id == event.merge);
  in_flight_.reset();
  fail(event.error);
}

}  // namespace speedo
