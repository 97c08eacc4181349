#include "sim/proof/watched_merger.hpp"

#include <utility>

namespace speedo::sim {

void WatchedMerger::merge(MergeJob job,
                          std::function<void(Result<MergeResult>)> done) {
  // A copy is queued behind the merge before anything else can be.
  const auto result = std::make_shared<std::optional<Result<MergeResult>>>();
  const auto order = std::make_shared<const MergeJob>(job);
  merger_->copy([this, order](const Result<Copy>&) { watch_.on_begin(order.get()); });
  merger_->merge(std::move(job), [this, result](const Result<MergeResult>& merged) {
    if (!merged) watch_.on_failed();
    result->emplace(merged);
  });
  merger_->copy([this, order, result, done = std::move(done)](const Result<Copy>& copy) {
    if (**result) watch_.on_merged(*order, ***result, *copy);
    done(std::move(**result));
  });
}

void WatchedMerger::enter_stage(std::uint32_t stage, std::string state,
                                std::function<void(Result<Version>)> done) {
  const auto result = std::make_shared<std::optional<Result<Version>>>();
  merger_->copy([this](const Result<Copy>&) { watch_.on_begin(nullptr); });
  merger_->enter_stage(stage, std::move(state), [this, result](const Result<Version>& entered) {
    if (!entered) watch_.on_failed();
    result->emplace(entered);
  });
  merger_->copy([this, result, done = std::move(done)](const Result<Copy>& copy) {
    if (**result) watch_.on_stage(*copy);
    done(std::move(**result));
  });
}

}  // namespace speedo::sim
