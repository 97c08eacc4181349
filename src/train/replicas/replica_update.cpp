#include "train/replicas/replica_update.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/base/limits.hpp>

#include "base/trace.hpp"
#include "store/is_lost.hpp"
#include "train/replicas/packed_gradient.hpp"
#include "train/replicas/step_gradient.hpp"
#include "train/replicas/step_header.hpp"
#include "train/replicas/step_layout.hpp"

namespace speedo {
namespace {

// The master writes weights and histories for who asks; over a slow network that takes its time.
constexpr std::chrono::seconds kWholePatience{60};
// Of so many, gradient, history and weights (3 MiB) stay in caches from one pass over them to the
// next, and there is work for many threads.
constexpr std::int64_t kCachedElements = std::int64_t{1} << 18;

class ReplicaUpdate : public WorkerUpdate {
 public:
  ReplicaUpdate(const Parts& parts, ReplicaOptions options)
      : parts_(parts),
        options_(std::move(options)),
        contribution_(parts.learner.layout(), options_.factors, options_.parts),
        gradient_(parts.learner.backend()) {
    if (contribution_.has_factors()) packed_.resize(contribution_.count());
  }
  // Its memory is not used any more.
  ~ReplicaUpdate() override {
    parts_.exchange.abandon();
    parts_.exchange.expect_nothing();
  }
  ReplicaUpdate(const ReplicaUpdate&) = delete;
  ReplicaUpdate& operator=(const ReplicaUpdate&) = delete;

  Result<std::uint64_t> begin(const TrainMessage& order) override {
    check_.reset();
    const std::optional<std::uint64_t> had = std::exchange(version_, std::nullopt);
    if (had) {
      parts_.learner.restore_statistics();
      take_check(*had);
    }
    step_.reset();
    if (had == order.version) {
      version_ = had;
    } else if (had && *had + 1 == order.version) {
      const auto begun = begin_step(order.version);
      if (!begun && !is_lost(begun.error())) return begun.error();
    }
    parts_.exchange.expect_nothing();
    formed_.clear();
    if (!version_ && !step_) SPEEDO_TRY(read_whole(order.version));
    SPEEDO_TRY(keep_statistics());
    return version_.value_or(order.version);
  }

  // A step is applied where its weights are needed, each parameter once.
  Result<void> need_weights(const Bucket& bucket) override {
    if (!step_) return {};
    if (options_.rule->needs_whole_gradient()) return apply({0, whole_count()});
    const auto slots = parts_.learner.layout().slots();
    for (std::size_t slot = 0; slot < slots.size() && step_; ++slot) {
      const Bucket part{slots[slot].offset, slots[slot].count()};
      if (step_->is_applied[slot] || common_part(part, bucket).count == 0) continue;
      SPEEDO_TRY(apply(part));
    }
    return {};
  }

  bool applies_last_update() const override { return false; }

  void begin_contribution(const TrainMessage& order, std::uint64_t base) override {
    parts_.learner.put_statistics_change_into_gradients();
    const auto form = [this](std::size_t offset, std::size_t count) { return pack(offset, count); };
    parts_.exchange.begin_contribution(order.run, base, contribution_.count(), form);
  }

  // Not what lies behind factors.
  void for_counting(const Bucket& bucket,
                    const std::function<void(const Bucket&)>& visit) const override {
    for (const PackedGradient::Piece& piece : contribution_.pieces()) {
      Bucket common = common_part(piece.arena, bucket);
      if (common.count == 0) continue;
      if (piece.factors) {
        SPEEDO_ASSERT(common == piece.arena);
        common.count = piece.factors->factor_count();
      }
      visit(common);
    }
  }

  // A bucket has whole parameters.
  void add(const Bucket& bucket) override {
    for (const PackedGradient::Place& place : contribution_.places()) {
      const PackedGradient::Piece& piece = contribution_.pieces()[place.piece];
      const bool is_factor = piece.factors.has_value();
      const Bucket common = common_part(is_factor ? piece.arena : arena_of(place), bucket);
      if (common.count == 0) continue;
      SPEEDO_ASSERT(!is_factor || common == piece.arena);
      const std::size_t within = is_factor ? 0 : index(common.offset - arena_of(place).offset);
      parts_.exchange.add(place.offset + within, is_factor ? place.count : index(common.count));
    }
  }

  Result<std::uint64_t> commit(const TrainMessage&) override { return parts_.exchange.commit(); }

  // Of as many contributions as the step before.
  void expect(std::uint64_t version) override {
    if (!expected_ || step_) return;
    const AheadRecord next{
        .version = version, .term = parts_.term, .element_count = expected_->count()};
    formed_.assign(parts_.learner.layout().slots().size(), Formed::kNot);
    parts_.exchange.expect(options_.step_key, next, step_room());
  }

  // Gradients are free while nothing computes them: a contribution with factors lies elsewhere.
  bool work_ahead() override {
    if (formed_.empty() || packed_.empty() || options_.rule->needs_whole_gradient()) return false;
    const auto slots = parts_.learner.layout().slots();
    const auto pieces = contribution_.pieces();
    const auto has_come = [this](const StepLayout::Run& run) {
      return parts_.exchange.has_come(run.offset, run.count);
    };
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      if (!pieces[piece].factors) continue;
      const std::size_t slot = pieces[piece].factors->slot;
      if (formed_[slot] != Formed::kNot) continue;
      if (!std::ranges::all_of(expected_->of_piece(piece), has_come)) continue;
      const TraceSpan span("form gradient");
      const Bucket part{slots[slot].offset, slots[slot].count()};
      const bool wants = parts_.learner.wants_step(product_multiply_adds(*expected_, part));
      if (wants && !gradient_.form(*expected_, part, values_, parts_.learner.gradients().data())) {
        return false;
      }
      formed_[slot] = wants ? Formed::kValues : Formed::kTime;
      return true;
    }
    return false;
  }

  void diverged() override { version_.reset(); }

  // Contributions travel by the store.
  std::shared_ptr<SharedMemory> home() const override { return nullptr; }
  std::size_t contribution_count() const override { return contribution_.count(); }
  std::optional<WeightsCheck> weights_check() const override { return check_; }

 private:
  // The step that leads to the version wanted, while it is being applied.
  struct Step {
    std::uint64_t version;
    StepHeader header;
    std::vector<bool> is_applied;  // of each slot
    std::size_t left;              // slots that are not
  };

  // Of a gradient that is a product: its values, or in their place only their time was taken.
  enum class Formed : char { kNot, kValues, kTime };

  static std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }
  std::int64_t whole_count() const { return parts_.learner.layout().element_count(); }

  // Error kNotFound: it is gone, or not a step from here.
  Result<void> begin_step(std::uint64_t version) {
    std::optional<Step> step;
    const auto room = [&](const RecordInfo& info) -> Result<RecordExchange::RecordRoom> {
      SPEEDO_ASSIGN(const StepHeader header, decode_step_header(info.state));
      const std::size_t slots = parts_.learner.layout().slots().size();
      step.emplace(Step{.version = version,
                        .header = header,
                        .is_applied = std::vector<bool>(slots),
                        .left = slots});
      std::unique_ptr<StepLayout> layout = layout_of(header);
      const std::size_t count = layout ? layout->count() : expected_->count();
      if (info.element_count != count || info.base_version + 1 != version) {
        return Error{ErrorCode::kNotFound, "the step in the store is of other weights"};
      }
      if (layout) {
        formed_.clear();  // what was formed ahead is of another layout
        parts_.exchange.expect_nothing();
        expected_ = std::move(layout);
      }
      values_.resize(count);
      return step_room();
    };
    SPEEDO_TRY(parts_.exchange.begin_record(options_.step_key, version, room));
    step_ = std::move(step);
    SPEEDO_TRY(apply_formed());
    if (step_ && step_->left == 0) finish_step();
    return {};
  }

  // Null: as expected.
  std::unique_ptr<StepLayout> layout_of(const StepHeader& header) const {
    const auto contributions = static_cast<std::size_t>(header.contributions);
    const auto parts = static_cast<std::size_t>(header.parts);
    if (expected_ && expected_->is_of(contributions, parts)) return nullptr;
    return std::make_unique<StepLayout>(contribution_, contributions, parts);
  }

  // Chunks of zeros are read by nobody.
  RecordExchange::RecordRoom step_room() { return {values_, expected_->chunks_with_values()}; }

  // What was formed ahead of the step counts where that is of the same values.
  Result<void> apply_formed() {
    const auto slots = parts_.learner.layout().slots();
    std::vector<Formed> formed = std::exchange(formed_, {});
    const auto pieces = contribution_.pieces();
    const auto was_here = [this](const StepLayout::Run& run) {
      return parts_.exchange.were_here(run.offset, run.count);
    };
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      if (!pieces[piece].factors || formed.empty()) continue;
      const std::size_t slot = pieces[piece].factors->slot;
      const bool counts = formed[slot] != Formed::kNot &&
                          std::ranges::all_of(expected_->of_piece(piece), was_here);
      if (!counts) continue;
      SPEEDO_TRY(apply({slots[slot].offset, slots[slot].count()}, formed[slot]));
    }
    return {};
  }

  // `formed`: of its gradient.
  Result<void> apply(const Bucket& part, Formed formed = Formed::kNot) {
    const TraceSpan span("apply step");
    Step& step = *step_;
    SPEEDO_TRY(await(part));
    const bool wants =
        formed == Formed::kNot
            ? parts_.learner.wants_step(product_multiply_adds(*expected_, part))
            : formed == Formed::kValues;
    is_exact_ = is_exact_ && wants;
    if (wants && formed == Formed::kNot) {
      SPEEDO_TRY(gradient_.form(*expected_, part, values_, parts_.learner.gradients().data()));
    }
    if (wants) apply_gradient(part);
    const auto slots = parts_.learner.layout().slots();
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      const bool is_inside = slots[slot].offset >= part.offset && slots[slot].offset < part.end();
      if (!is_inside || step.is_applied[slot]) continue;
      step.is_applied[slot] = true;
      --step.left;
    }
    if (step.left == 0) finish_step();
    return {};
  }

  // As the master does it, bit for bit.
  void apply_gradient(const Bucket& part) {
    const Step& step = *step_;
    Backend& backend = parts_.learner.backend();
    float* const gradients = parts_.learner.gradients().data();
    options_.rule->scale_rate(step.header.rate_scale);
    float* const weights = parts_.learner.weights().data();
    const bool in_blocks = parts_.host.is_direct() && !options_.rule->needs_whole_gradient();
    const std::int64_t length = in_blocks ? kCachedElements : part.count;
    for (Bucket block{part.offset, 0}; block.offset < part.end(); block.offset = block.end()) {
      block.count = std::min(length, part.end() - block.offset);
      options_.rule->compute_delta(static_cast<std::int64_t>(step.header.iteration), block,
                                   weights, gradients);
      backend.axpby(block.count, 1.0F, gradients + block.offset, 1.0F, weights + block.offset);
    }
    // The pass that is under way adds to what is not left as factors.
    for (const PackedGradient::Piece& piece : contribution_.pieces()) {
      const Bucket added = common_part(piece.arena, part);
      if (!piece.factors) backend.fill(added.count, 0.0F, gradients + added.offset);
    }
  }

  void finish_step() {
    version_ = step_->version;
    step_.reset();
  }

  Result<void> await(const Bucket& part) {
    const auto pieces = contribution_.pieces();
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      const Bucket common = common_part(pieces[piece].arena, part);
      if (common.count == 0) continue;
      const bool is_whole = pieces[piece].factors.has_value();
      const std::size_t first = is_whole ? 0 : index(common.offset - pieces[piece].arena.offset);
      const std::size_t count = is_whole ? pieces[piece].count : index(common.count);
      for (const StepLayout::Run& run : expected_->of_piece(piece)) {
        SPEEDO_TRY(await(run, first, first + count));
      }
    }
    return {};
  }

  // What a run has of elements [first, end) of its piece.
  Result<void> await(const StepLayout::Run& run, std::size_t first, std::size_t end) {
    const std::size_t begin = std::max(run.first, first);
    const std::size_t stop = std::min(run.first + run.count, end);
    if (begin >= stop) return {};
    const auto here =
        parts_.exchange.need_weights(run.offset + begin - run.first, stop - begin);
    // The weights make good for a step that is gone, or damaged.
    if (!here && is_lost(here.error())) return Error{ErrorCode::kNotFound, here.error().message};
    return here;
  }

  // Of the products that make the gradient of `part`.
  static double product_multiply_adds(const StepLayout& step, const Bucket& part) {
    double sum = 0.0;
    for (const PackedGradient::Piece& piece : step.contribution().pieces()) {
      if (!piece.factors || common_part(piece.arena, part).count == 0) continue;
      const double rows = static_cast<double>(piece.factors->rows) *
                          static_cast<double>(step.contributions());
      sum += rows * static_cast<double>(piece.factors->height) *
             static_cast<double>(piece.factors->width);
    }
    return sum;
  }

  // Weights, and behind them the histories.
  Result<void> read_whole(std::uint64_t version) {
    const std::vector<Arena*> histories = options_.rule->histories();
    const std::size_t count = parts_.count();
    std::vector<float> record((1 + histories.size()) * count);
    SPEEDO_ASSIGN(const RecordInfo info,
                  parts_.exchange.read_weights(version, record, kWholePatience));
    Device& device = parts_.learner.backend().device();
    const std::span<const float> values = record;
    device.upload(parts_.learner.weights().data(), values.first(count));
    for (std::size_t i = 0; i < histories.size(); ++i) {
      device.upload(histories[i]->data(), values.subspan((i + 1) * count, count));
    }
    version_ = info.version;
    return {};
  }

  // As the run finds them; passes change them.
  Result<void> keep_statistics() {
    for (const ParameterSlot& slot : parts_.learner.layout().slots()) {
      if (slot.is_statistic) SPEEDO_TRY(need_weights({slot.offset, slot.count()}));
    }
    parts_.learner.keep_statistics();
    return {};
  }

  void take_check(std::uint64_t version) {
    if (version % kReplicaCheckInterval != 0 || !is_exact_) return;
    const std::span<const float> weights =
        parts_.host.part(parts_.learner.weights(), 0, parts_.count());
    check_ = WeightsCheck{Version{version}, checksum_of(std::as_bytes(weights))};
  }

  // Elements of the contribution, put together where they are not one range of the arena.
  std::span<float> pack(std::size_t offset, std::size_t count) {
    Arena& gradients = parts_.learner.gradients();
    if (packed_.empty()) return parts_.host.part(gradients, offset, count);
    const std::span<float> packed = std::span(packed_).subspan(offset, count);
    contribution_.for_places(offset, count, [&](const PackedGradient::Place& place) {
      const std::span<const float> part =
          parts_.host.part(gradients, index(arena_of(place).offset), place.count);
      std::ranges::copy(part, packed.subspan(place.offset - offset).begin());
    });
    return packed;
  }

  // Where its values lie among gradients, factors from their parameter's begin.
  Bucket arena_of(const PackedGradient::Place& place) const {
    const Bucket& piece = contribution_.pieces()[place.piece].arena;
    return {piece.offset + static_cast<std::int64_t>(place.first),
            static_cast<std::int64_t>(place.count)};
  }

  const Parts parts_;
  const ReplicaOptions options_;
  const PackedGradient contribution_;
  StepGradient gradient_;
  std::optional<std::uint64_t> version_;  // of the weights, but for statistics; none: unknown
  std::optional<Step> step_;
  std::vector<float> values_;  // of the step, or of what comes of the expected one
  // Of the last step begun, and the next if it is like it.
  std::unique_ptr<StepLayout> expected_;
  std::vector<Formed> formed_;              // of the expected one, by slot
  std::vector<float> packed_;  // of the contribution; unused without factors
  bool is_exact_ = true;       // every step was applied so far
  std::optional<WeightsCheck> check_;
};

}  // namespace

std::unique_ptr<WorkerUpdate> make_replica_update(const WorkerUpdate::Parts& parts,
                                                  ReplicaOptions options) {
  return std::make_unique<ReplicaUpdate>(parts, std::move(options));
}

}  // namespace speedo
