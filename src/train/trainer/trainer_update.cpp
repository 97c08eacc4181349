// W: the weights as read; u: the update of a step.
//   full delta, one step         -u           exact, where the difference of two rounded values is
//                                             not
//   full delta, several steps    W_after - W
//   ... and averaged updaters    the same of weights and histories
//   gradient only                g
// Forward passes change statistics (BatchNorm's) in W itself: in their places u and g hold
// W - W_after, which no rule changes before it is subtracted.

#include "train/trainer/trainer_update.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>

#include "base/simd.hpp"
#include "train/trainer/weights_in_place.hpp"

namespace speedo {
namespace {

using Parts = WorkerUpdate::Parts;

// before = after - before
SPEEDO_MULTIVERSION void subtract(const float* after, float* before, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) before[i] = after[i] - before[i];
}

// What is contributed lies in the gradient arena: the gradient, or the only step's update. So
// nothing but passes' statistics is written where the weights are, and in rounds they are read
// where their writer has them, if that can be: it writes there again after the contributions of the
// next round.
class GradientUpdate : public WorkerUpdate {
 public:
  // `in_rounds`: of UpdateSpec.
  GradientUpdate(const Parts& parts, bool in_rounds) : parts_(parts), in_rounds_(in_rounds) {}
  // The weights' memory is others' from now on.
  ~GradientUpdate() override {
    parts_.exchange.expect_nothing();
    take_weights_home();
  }
  GradientUpdate(const GradientUpdate&) = delete;
  GradientUpdate& operator=(const GradientUpdate&) = delete;

  void set_follows(bool follows) override { follows_ = follows; }

  Result<std::uint64_t> begin(const TrainMessage& order) override {
    take_weights_home();
    Arena& weights = parts_.learner.weights();
    SPEEDO_ASSIGN(auto reader, parts_.exchange.open_weights(order.version, parts_.count()));
    const std::uint64_t version = reader->info().version;
    if (leave_in_place(reader)) return version;
    const auto arrived = [this, &weights](std::size_t offset, std::size_t count) {
      parts_.host.land(weights, offset, count);
    };
    parts_.exchange.begin_weights(std::move(reader), parts_.host.landing(weights), arrived);
    for (const ParameterSlot& slot : parts_.learner.layout().slots()) {
      if (slot.is_statistic) SPEEDO_TRY(need_weights({slot.offset, slot.count()}));
    }
    parts_.learner.keep_statistics();
    return version;
  }

  Result<void> need_weights(const Bucket& bucket) override {
    if (in_place_) return {};
    return parts_.need_weights(bucket);
  }

  // Whoever is late, or in rounds with others who are not, finds out so, and copies from then on.
  bool has_lost_weights() override {
    if (!in_place_) return false;
    parts_.learner.backend().device().synchronize();
    were_lost_ = !in_place_->are_still();
    return were_lost_;
  }

  bool applies_last_update() const override { return false; }

  void begin_contribution(const TrainMessage& order, std::uint64_t base) override {
    parts_.learner.put_statistics_change_into_gradients();
    const auto form = [this](std::size_t offset, std::size_t count) {
      return parts_.host.part(parts_.learner.gradients(), offset, count);
    };
    parts_.exchange.begin_contribution(order.run, base, parts_.count(), form);
  }

  void add(const Bucket& bucket) override { parts_.add(bucket); }

  Result<std::uint64_t> commit(const TrainMessage&) override { return parts_.exchange.commit(); }

  Arena* formed_of() const override { return &parts_.learner.gradients(); }

  // Whoever computes with a chunk of the weights has not contributed it yet. A copy of an arena is
  // not free before the contribution that lies in it is committed.
  void expect(std::uint64_t version) override {
    if (!parts_.host.is_direct() || in_place_) return;
    const AheadRecord next{
        .version = version, .term = parts_.term, .element_count = parts_.count()};
    const std::span<float> target = parts_.host.landing(parts_.learner.weights());
    parts_.exchange.expect(weights_key(), next, target, true);
  }

  std::shared_ptr<SharedMemory> home() const override {
    return parts_.host.shared(parts_.learner.gradients());
  }
  std::size_t contribution_count() const override { return parts_.count(); }

 private:
  // True: passes find them where they lie. Statistics are copied, as passes change them.
  bool leave_in_place(std::unique_ptr<RecordReader>& reader) {
    const bool may_be = in_rounds_ && follows_ && !were_lost_;
    if (!may_be || !parts_.learner.can_read_weights_elsewhere()) return false;
    in_place_ = WeightsInPlace::take(reader);
    if (!in_place_) return false;
    parts_.exchange.expect_nothing();
    const float* const values = in_place_->values();
    parts_.learner.read_weights_from(values);
    for (const ParameterSlot& slot : parts_.learner.layout().slots()) {
      if (!slot.is_statistic) continue;
      std::copy_n(values + slot.offset, slot.count(),
                  parts_.learner.weights().data() + slot.offset);
    }
    parts_.learner.keep_statistics();
    return true;
  }

  void take_weights_home() {
    if (in_place_) parts_.learner.read_weights_from(nullptr);
    in_place_.reset();
  }

  const Parts parts_;
  const bool in_rounds_;
  bool follows_ = false;
  std::optional<WeightsInPlace> in_place_;  // of the run under way, or the last one
  bool were_lost_ = false;                  // once
};

// The change of the weights, and of the histories if they are averaged.
class DifferenceUpdate : public WorkerUpdate {
 public:
  DifferenceUpdate(const Parts& parts, bool averages) : parts_(parts) {
    arenas_.push_back(&parts.learner.weights());
    if (averages) {
      for (Arena* history : parts.rule->histories()) arenas_.push_back(history);
    }
    memory_ = HostFloats(arenas_.size() * parts.count(), parts.shares_memory);
    before_ = memory_.values();
  }
  // Its memory is not used any more.
  ~DifferenceUpdate() override { parts_.exchange.abandon(); }
  DifferenceUpdate(const DifferenceUpdate&) = delete;
  DifferenceUpdate& operator=(const DifferenceUpdate&) = delete;

  Result<std::uint64_t> begin(const TrainMessage& order) override {
    const auto arrived = [this](std::size_t offset, std::size_t count) {
      for_parts(offset, count, [this](const Part& part) {
        parts_.learner.backend().device().upload(
            part.arena.data() + part.within, before_.subspan(part.offset, part.count));
      });
    };
    SPEEDO_ASSIGN(const RecordInfo info,
                  parts_.exchange.begin_weights(order.version, before_, arrived));
    // Histories are used with the first bucket that is final.
    const std::size_t weights = parts_.count();
    SPEEDO_TRY(parts_.exchange.need_weights(weights, before_.size() - weights));
    return info.version;
  }

  Result<void> need_weights(const Bucket& bucket) override {
    return parts_.need_weights(bucket);
  }

  void begin_contribution(const TrainMessage& order, std::uint64_t base) override {
    const float factor = 1.0F / static_cast<float>(order.shards);
    const auto form = [this, factor](std::size_t offset, std::size_t count) {
      for_parts(offset, count, [&](const Part& part) {
        const std::span<const float> after = parts_.host.part(part.arena, part.within, part.count);
        subtract(after.data(), before_.data() + part.offset, part.count);
        if (factor < 1.0F) scale_statistics(part, factor);
      });
      return before_.subspan(offset, count);
    };
    parts_.exchange.begin_contribution(order.run, base, before_.size(), form);
  }

  void add(const Bucket& bucket) override {
    for (std::size_t arena = 0; arena < arenas_.size(); ++arena) {
      parts_.exchange.add(arena * parts_.count() + static_cast<std::size_t>(bucket.offset),
                          static_cast<std::size_t>(bucket.count));
    }
  }

  Result<std::uint64_t> commit(const TrainMessage&) override { return parts_.exchange.commit(); }

  Arena* formed_of() const override { return arenas_.size() == 1 ? arenas_.front() : nullptr; }
  std::shared_ptr<SharedMemory> home() const override { return memory_.shared(); }
  std::size_t contribution_count() const override { return before_.size(); }

 private:
  // What a range of the record covers of one arena.
  struct Part {
    Arena& arena;
    std::size_t offset, within, count;  // in the record, in the arena
  };
  void for_parts(std::size_t offset, std::size_t count,
                 const std::function<void(const Part&)>& visit) {
    const std::size_t end = offset + count;
    while (offset < end) {
      const std::size_t within = offset % parts_.count();
      const std::size_t length = std::min(end - offset, parts_.count() - within);
      visit({*arenas_[offset / parts_.count()], offset, within, length});
      offset += length;
    }
  }

  // Several shards make one larger batch, and its statistics changed with each of them: what is
  // contributed is the size of one's.
  void scale_statistics(const Part& part, float factor) {
    if (&part.arena != arenas_.front()) return;  // Histories have none.
    for (const ParameterSlot& slot : parts_.learner.layout().slots()) {
      if (!slot.is_statistic) continue;
      const auto first = static_cast<std::size_t>(slot.offset);
      const std::size_t begin = std::max(first, part.within);
      const std::size_t end =
          std::min(first + static_cast<std::size_t>(slot.count()), part.within + part.count);
      for (std::size_t i = begin; i < end; ++i) before_[i] *= factor;
    }
  }

  const Parts parts_;
  std::vector<Arena*> arenas_;
  HostFloats memory_;
  std::span<float> before_;  // all of it
};

}  // namespace

std::unique_ptr<WorkerUpdate> make_worker_update(const UpdateSpec& spec, const Parts& parts) {
  if (is_elastic(spec.kind)) return make_elastic_update(spec, parts);
  const bool is_delta = spec.kind == UpdateKind::kFullDelta;
  SPEEDO_ASSERT(!is_delta || parts.rule != nullptr);
  if (is_delta && (spec.steps_per_run > 1 || averages_histories(spec))) {
    return std::make_unique<DifferenceUpdate>(parts, averages_histories(spec));
  }
  return std::make_unique<GradientUpdate>(parts, spec.in_rounds);
}

}  // namespace speedo
