// W: the weights as read; u: the update of a step.
//   full delta, one step         -u           exact, where the difference of two rounded values is
//                                             not
//   full delta, several steps    W_after - W
//   ... and averaged updaters    the same of weights and histories
//   gradient only                g
// Forward passes change statistics (BatchNorm's) in W itself: in their places u and g hold
// W - W_after, which no rule changes before it is subtracted.

#include "train/trainer_update.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>

#include "base/simd.hpp"
#include "core/kept_statistics.hpp"

namespace speedo {
namespace {

using Parts = WorkerUpdate::Parts;

SPEEDO_MULTIVERSION void negate(float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = -values[i];
}

// before = after - before
SPEEDO_MULTIVERSION void subtract(const float* after, float* before, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) before[i] = after[i] - before[i];
}

// What is contributed lies in the gradient arena: the gradient, or the only step's update.
class GradientUpdate : public WorkerUpdate {
 public:
  GradientUpdate(const Parts& parts, bool negative)
      : parts_(parts), statistics_(parts.net), negative_(negative) {}

  Result<std::uint64_t> begin(const TrainMessage& order) override {
    Arena& weights = parts_.net.weights();
    SPEEDO_ASSIGN(const RecordInfo info,
                  parts_.exchange.read_weights(order.version, parts_.host.landing(weights)));
    parts_.host.land(weights);
    statistics_.keep();
    return info.version;
  }

  bool applies_last_update() const override { return false; }

  Result<std::uint64_t> contribute(const TrainMessage& order, std::uint64_t base) override {
    statistics_.put_change_into_gradients();
    const auto form = [this](std::size_t offset, std::size_t count) {
      const std::span<float> part = parts_.host.part(parts_.net.gradients(), offset, count);
      if (negative_) negate(part.data(), count);
      return part;
    };
    SPEEDO_TRY(parts_.exchange.contribute(order.run, base, parts_.count(), form));
    return base;
  }

 private:
  const Parts parts_;
  KeptStatistics statistics_;  // as the run found them
  const bool negative_;
};

// The change of the weights, and of the histories if they are averaged.
class DifferenceUpdate : public WorkerUpdate {
 public:
  DifferenceUpdate(const Parts& parts, bool averages) : parts_(parts) {
    arenas_.push_back(&parts.net.weights());
    if (averages) {
      for (Arena* history : parts.rule->histories()) arenas_.push_back(history);
    }
    before_.resize(arenas_.size() * parts.count());
  }

  Result<std::uint64_t> begin(const TrainMessage& order) override {
    SPEEDO_ASSIGN(const RecordInfo info, parts_.exchange.read_weights(order.version, before_));
    const std::size_t count = parts_.count();
    for (std::size_t i = 0; i < arenas_.size(); ++i) {
      parts_.net.backend().upload(arenas_[i]->data(), std::span(before_).subspan(i * count, count));
    }
    return info.version;
  }

  Result<std::uint64_t> contribute(const TrainMessage& order, std::uint64_t base) override {
    const auto form = [this](std::size_t offset, std::size_t count) {
      form_difference(offset, count);
      return std::span<const float>(before_).subspan(offset, count);
    };
    SPEEDO_TRY(parts_.exchange.contribute(order.run, base, before_.size(), form));
    return base;
  }

 private:
  // The range may cover parts of several arenas.
  void form_difference(std::size_t offset, std::size_t count) {
    const std::size_t end = offset + count;
    while (offset < end) {
      const std::size_t arena = offset / parts_.count();
      const std::size_t within = offset % parts_.count();
      const std::size_t length = std::min(end - offset, parts_.count() - within);
      const std::span<const float> after = parts_.host.part(*arenas_[arena], within, length);
      subtract(after.data(), before_.data() + offset, length);
      offset += length;
    }
  }

  const Parts parts_;
  std::vector<Arena*> arenas_;
  std::vector<float> before_;
};

}  // namespace

std::unique_ptr<WorkerUpdate> make_worker_update(const UpdateSpec& spec, const Parts& parts) {
  if (is_elastic(spec.kind)) return make_elastic_update(spec, parts);
  const bool is_delta = spec.kind == UpdateKind::kFullDelta;
  SPEEDO_ASSERT(!is_delta || parts.rule != nullptr);
  if (is_delta && (spec.steps_per_run > 1 || averages_histories(spec))) {
    return std::make_unique<DifferenceUpdate>(parts, averages_histories(spec));
  }
  return std::make_unique<GradientUpdate>(parts, is_delta);
}

}  // namespace speedo
