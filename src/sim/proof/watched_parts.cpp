#include "sim/proof/watched_parts.hpp"

#include <utility>

namespace speedo::sim {

void WatchedParts::ordered(Order order) {
  orders_.push_back(std::move(order));
  if (orders_.size() == 1) watch_.on_begin(orders_.front().get());
}

void WatchedParts::ended() {
  orders_.pop_front();
  if (!orders_.empty()) watch_.on_begin(orders_.front().get());
}

void WatchedParts::merge(MergeJob job, std::function<void(Result<MergeResult>)> done) {
  const auto order = std::make_shared<const MergeJob>(job);
  ordered(order);
  merger_->merge(std::move(job), [this, order, done = std::move(done)](Result<MergeResult> merged) {
    if (merged) {
      watch_.on_merged(*order, *merged);
    } else {
      watch_.on_failed();
    }
    ended();
    done(std::move(merged));
  });
}

void WatchedParts::enter_stage(std::uint32_t stage, std::string state,
                               std::function<void(Result<Version>)> done) {
  ordered(nullptr);
  merger_->enter_stage(stage, std::move(state),
                       [this, done = std::move(done)](Result<Version> entered) {
                         if (entered) {
                           watch_.on_stage(*entered);
                         } else {
                           watch_.on_failed();
                         }
                         ended();
                         done(std::move(entered));
                       });
}

}  // namespace speedo::sim
