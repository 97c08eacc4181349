#include "train/trainer/emulated_learner.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/base/random.hpp>
#include <speedo/core/net.hpp>
#include <speedo/core/solver.hpp>

#include "base/trace.hpp"

namespace speedo {
namespace {

constexpr double kForwardPart = 1.0 / 3.0, kBackwardPart = 2.0 / 3.0;
// Shorter ones are saved up: a thread that sleeps comes back late by some 50 microseconds.
constexpr Instant kShortestSleep = std::chrono::microseconds(200);
constexpr std::size_t kPatternLength = 8192;
constexpr float kGradientDeviation = 1e-4F;
constexpr std::uint64_t kPatternStream = 0xE31, kTimeStream = 0xE32;

// The parameters of one layer, and its part of the net's arithmetic.
struct EmulatedLayer {
  Bucket bucket;
  double part = 0.0;
};

// Of the first parameter of a layer with weights for each output: every output value takes as many
// as one output's weights are.
double multiply_adds(const Net::LayerView& view, const ParameterLayout& layout) {
  const ParameterSlot& weights = layout.slots()[view.slots.front()];
  const bool has_outputs = weights.shape.axes() >= 2 && !view.tops.empty();
  if (!has_outputs) return 0.0;
  return static_cast<double>(weights.count()) / static_cast<double>(weights.shape[0]) *
         static_cast<double>(view.tops[0]->shape().count());
}

struct EmulatedNet {
  ParameterLayout layout;
  std::vector<EmulatedLayer> layers;  // in forward's order
  std::uint64_t batch_size = 0;
  std::vector<FactorShape> factor_shapes;
  double multiply_adds = 0.0;         // of a step
};

// Forward, and backward twice as many.
constexpr double kStepOverForward = 3.0;

double step_multiply_adds(const Net& net) {
  double sum = 0.0;
  for (const Net::LayerView& view : net.layers()) {
    if (!view.slots.empty()) sum += multiply_adds(view, net.layout());
  }
  return kStepOverForward * sum;
}

std::int64_t end_with_padding(const ParameterLayout& layout, std::size_t slot) {
  return slot + 1 < layout.slots().size() ? layout.slots()[slot + 1].offset
                                          : layout.element_count();
}

std::vector<EmulatedLayer> emulated_layers(const Net& net) {
  std::vector<EmulatedLayer> layers;
  const ParameterLayout& layout = net.layout();
  std::int64_t done = 0;  // of the layout: a shared parameter is its first layer's
  double sum = 0.0;
  for (const Net::LayerView& view : net.layers()) {
    if (view.slots.empty()) continue;
    const double work = multiply_adds(view, layout);
    sum += work;
    const std::int64_t end = end_with_padding(layout, view.slots.back());
    if (end > done) {
      layers.push_back({{done, end - done}, work});
      done = end;
    } else if (!layers.empty()) {
      layers.back().part += work;
    }
  }
  const double even = layers.empty() ? 0.0 : 1.0 / static_cast<double>(layers.size());
  for (EmulatedLayer& layer : layers) layer.part = sum > 0.0 ? layer.part / sum : even;
  return layers;
}

std::vector<float> pattern() {
  Random random = Random::derive(0, {kPatternStream});
  std::vector<float> values(kPatternLength);
  for (float& value : values) value = random.gaussian(0.0F, kGradientDeviation);
  return values;
}

class EmulatedLearner : public Learner {
 public:
  struct Parts {
    Platform& platform;
    EmulatedCompute compute;
    std::atomic<std::uint64_t>& progress;
    std::unique_ptr<Backend> backend;
    EmulatedNet net;
  };
  static Result<std::unique_ptr<Learner>> create(Parts parts, bool shares_gradients) {
    std::unique_ptr<EmulatedLearner> made(new EmulatedLearner(std::move(parts)));
    Backend& backend = *made->parts_.backend;
    const std::int64_t count = made->parts_.net.layout.element_count();
    SPEEDO_ASSIGN(made->weights_, Arena::create(backend, count));
    SPEEDO_ASSIGN(made->gradients_, shares_gradients ? Arena::create_shared(backend, count)
                                                     : Arena::create(backend, count));
    return std::unique_ptr<Learner>(std::move(made));
  }

  const ParameterLayout& layout() const override { return parts_.net.layout; }
  Backend& backend() override { return *parts_.backend; }
  Arena& weights() override { return weights_; }
  Arena& gradients() override { return gradients_; }
  void set_batch_span(const BatchSpan& span) override { next_batch_ = span.first; }
  std::uint64_t batch_size() const override { return parts_.net.batch_size; }
  std::chrono::nanoseconds data_waited() const override { return Instant{0}; }
  std::chrono::nanoseconds gone_forward() const override { return gone_forward_; }
  void keep_statistics() override {}
  void put_statistics_change_into_gradients() override {}
  std::vector<FactorShape> factor_shapes() const override { return parts_.net.factor_shapes; }
  void leave_factors(std::span<const FactorShape> shapes) override {
    factored_.assign(shapes.begin(), shapes.end());
  }
  // Products at the step's own rate; the update is in its time.
  bool wants_step(double multiply_adds) override {
    if (parts_.net.multiply_adds > 0.0) {
      spend(part_of(parts_.compute.step, multiply_adds / parts_.net.multiply_adds));
    }
    return false;
  }

  void has_updated(Instant took) override { owed_ -= took; }

  Result<float> accumulate_gradients(int passes, const Hooks& hooks) override {
    SPEEDO_ASSERT(passes > 0);
    for (int pass = 0; pass < passes; ++pass) {
      const Instant step = draw_step(next_batch_++);
      SPEEDO_TRY(go_forward(step, pass == 0 ? &hooks : nullptr));
      const bool is_last = pass + 1 == passes;
      if (is_last && hooks.last_backward) hooks.last_backward();
      go_backward(step, is_last ? &hooks : nullptr);
    }
    return 1.0F;
  }

 private:
  explicit EmulatedLearner(Parts parts) : parts_(std::move(parts)), pattern_(pattern()) {}

  Instant draw_step(std::uint64_t batch) const {
    Random random = Random::derive(batch, {kTimeStream});
    const double factor =
        1.0 + parts_.compute.spread * static_cast<double>(random.uniform(-1.0F, 1.0F));
    return part_of(parts_.compute.step, factor);
  }

  static Instant part_of(Instant time, double part) {
    return Instant{static_cast<Instant::rep>(static_cast<double>(time.count()) * part)};
  }

  // What a sleep takes too long, the next ones are shorter by.
  void spend(Instant time) {
    owed_ += time;
    parts_.progress.fetch_add(1, std::memory_order_relaxed);
    if (owed_ < kShortestSleep) return;
    const Instant start = parts_.platform.clock().now();
    parts_.platform.sleep(owed_);
    owed_ -= parts_.platform.clock().now() - start;
  }

  Result<void> go_forward(Instant step, const Hooks* hooks) {
    const TraceSpan span("forward");
    const Instant start = parts_.platform.clock().now();
    const bool asks = hooks != nullptr && hooks->weights_needed;
    for (const EmulatedLayer& layer : parts_.net.layers) {
      if (asks) SPEEDO_TRY(hooks->weights_needed(layer.bucket));
      spend(part_of(step, kForwardPart * layer.part));
    }
    if (asks) SPEEDO_TRY(hooks->weights_needed({0, parts_.net.layout.element_count()}));
    gone_forward_ += parts_.platform.clock().now() - start;
    return {};
  }

  void go_backward(Instant step, const Hooks* hooks) {
    const TraceSpan span("backward");
    for (auto layer = parts_.net.layers.rbegin(); layer != parts_.net.layers.rend(); ++layer) {
      spend(part_of(step, std::max(0.0, kBackwardPart * layer->part - saved_part(layer->bucket))));
      if (hooks == nullptr) continue;
      const Instant start = parts_.platform.clock().now();
      write_gradients(layer->bucket);
      owed_ -= parts_.platform.clock().now() - start;  // a part of the step's time, like a net's
      if (hooks->gradient_ready) hooks->gradient_ready(layer->bucket, StreamEvent());
    }
  }

  // Padding, statistics and what does not learn stay zero, as in a net.
  void write_gradients(const Bucket& bucket) {
    const std::size_t start = static_cast<std::size_t>(next_batch_ * 31 % kPatternLength);
    for (std::size_t index = 0; index < parts_.net.layout.slots().size(); ++index) {
      const ParameterSlot& slot = parts_.net.layout.slots()[index];
      const bool is_inside =
          slot.offset >= bucket.offset && slot.offset < bucket.offset + bucket.count;
      if (!is_inside || slot.is_statistic || slot.lr_mult == 0.0F) continue;
      write_pattern(gradients_.data() + slot.offset, written_count(index), start);
    }
  }

  // Of a parameter that is left as factors, those.
  std::size_t written_count(std::size_t slot) const {
    for (const FactorShape& shape : factored_) {
      if (shape.slot == slot) return static_cast<std::size_t>(shape.factor_count());
    }
    return static_cast<std::size_t>(parts_.net.layout.slots()[slot].count());
  }

  // The product that is not formed where its factors are left.
  double saved_part(const Bucket& bucket) const {
    double saved = 0.0;
    for (const FactorShape& shape : factored_) {
      const std::int64_t offset = parts_.net.layout.slots()[shape.slot].offset;
      if (offset < bucket.offset || offset >= bucket.end()) continue;
      saved += static_cast<double>(shape.rows * shape.height * shape.width);
    }
    return parts_.net.multiply_adds > 0.0 ? saved / parts_.net.multiply_adds : 0.0;
  }

  void write_pattern(float* target, std::size_t count, std::size_t start) {
    while (count > 0) {
      const std::size_t length = std::min(count, kPatternLength - start);
      parts_.backend->device().upload(target, std::span(pattern_).subspan(start, length));
      target += length;
      count -= length;
      start = 0;
    }
  }

  const Parts parts_;
  const std::vector<float> pattern_;
  Arena weights_, gradients_;
  std::vector<FactorShape> factored_;
  std::uint64_t next_batch_ = 0;
  Instant owed_{0}, gone_forward_{0};
};

// The net itself is planned, and gone again.
Result<EmulatedNet> read_net(const TrainerParts& parts, const LearnerOptions& options,
                             Backend& backend) {
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  SPEEDO_ASSIGN(const SolverNets nets, create_nets(options.solver, {.backend = &backend,
                                                                    .feeds = feeds.get(),
                                                                    .base = options.job.base,
                                                                    .plan_only = true}));
  return EmulatedNet{nets.train->layout(), emulated_layers(*nets.train),
                     batch_size_of(*nets.train), nets.train->factor_shapes(),
                     step_multiply_adds(*nets.train)};
}

}  // namespace

Result<std::unique_ptr<Learner>> make_emulated_learner(const TrainerParts& parts,
                                                       const EmulatedCompute& compute,
                                                       const LearnerOptions& options) {
  SPEEDO_ASSIGN(std::unique_ptr<Backend> backend, parts.make_backend());
  SPEEDO_ASSIGN(EmulatedNet net, read_net(parts, options, *backend));
  return EmulatedLearner::create({.platform = *parts.platform,
                                  .compute = compute,
                                  .progress = options.progress,
                                  .backend = std::move(backend),
                                  .net = std::move(net)},
                                 parts.shares_memory);
}

}  // namespace speedo
