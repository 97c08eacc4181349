#include <cmath>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/core/solver.hpp>

#include "core/kept_values.hpp"
#include "core/non_finite.hpp"
#include "train/trainer/learner.hpp"

namespace speedo {
namespace {

class NetLearner : public Learner {
 public:
  // In the order of dependence: the net uses backend and feeds.
  struct Parts {
    const Clock& clock;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<FeedFactory> feeds;
    SolverNets nets;
    std::function<std::uint64_t()> take_parser_deaths;  // may be empty
  };
  explicit NetLearner(Parts parts)
      : parts_(std::move(parts)),
        net_(*parts_.nets.train),
        statistics_(net_, KeptValues::Kind::kStatistics),
        kept_in_step_(net_, KeptValues::Kind::kAll) {}

  const ParameterLayout& layout() const override { return net_.layout(); }
  Backend& backend() override { return *parts_.backend; }
  Arena& weights() override { return net_.weights(); }
  Arena& gradients() override { return net_.gradients(); }
  // Not where a pass carries values to the next one: a run that comes to nothing, as its weights
  // were overwritten, would leave them a step further.
  bool can_read_weights_elsewhere() const override {
    const auto carries = [](const Net::LayerView& view) {
      return !view.layer->carried_values().empty();
    };
    return parts_.backend->device().memory() == MemoryKind::kHost &&
           std::ranges::none_of(net_.layers(), carries);
  }
  void read_weights_from(const float* place) override {
    place_ = place;
    for (const Net::LayerView& view : net_.layers()) {
      const std::vector<Tensor*>& parameters = view.layer->parameters();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ParameterSlot& slot = layout().slots()[view.slots[i]];
        if (slot.is_statistic) continue;
        // Layers write to no others.
        parameters[i]->place_data(const_cast<float*>(weights_read()) + slot.offset);
      }
    }
  }
  const float* weights_read() override {
    return place_ != nullptr ? place_ : weights().data();
  }
  void set_batch_span(const BatchSpan& span) override {
    net_.set_batch_span(span);
    span_ = span;
    last_passes_ = 0;
  }
  Result<float> accumulate_gradients(int passes, const Hooks& hooks) override {
    SPEEDO_ASSERT(passes > 0);
    move_on(passes);
    net_.clear_gradients();
    float loss = 0.0F;
    for (int pass = 0; pass < passes; ++pass) {
      SPEEDO_ASSIGN(const float term, forward(pass == 0 ? hooks.weights_needed : nullptr));
      loss += term;
      const bool is_last = pass + 1 == passes;
      if (is_last && !std::isfinite(loss)) break;
      if (is_last && hooks.last_backward) hooks.last_backward();
      net_.on_gradient_ready(is_last ? hooks.gradient_ready : nullptr);
      net_.backward();
    }
    net_.on_gradient_ready(nullptr);
    return loss / static_cast<float>(passes);
  }
  Result<std::string> find_non_finite_values() override {
    if (place_ != nullptr) bring_weights();
    net_.set_batch_span({.first = span_.first});
    return speedo::find_non_finite_values(net_, last_passes_);
  }
  std::string find_non_finite_gradients(const Bucket& range) override {
    return speedo::find_non_finite_gradients(net_, range);
  }
  std::chrono::nanoseconds data_waited() const override { return parts_.feeds->totals().waited; }
  ReadFaults take_read_faults() override {
    const std::int64_t skipped = parts_.feeds->totals().skipped_records;
    const std::int64_t before = std::exchange(skipped_told_, skipped);
    return {.skipped_records = static_cast<std::uint64_t>(skipped - before),
            .parser_deaths = parts_.take_parser_deaths ? parts_.take_parser_deaths() : 0};
  }
  std::chrono::nanoseconds gone_forward() const override { return gone_forward_; }
  void keep_statistics() override { statistics_.keep(); }
  void put_statistics_change_into_gradients() override {
    statistics_.put_change_into_gradients();
  }

  void restore_statistics() override { statistics_.restore(); }
  Result<std::unique_ptr<QuietSteps>> make_quiet_steps(UpdateRule& rule, int passes) override {
    return QuietSteps::create(
        {.net = net_, .rule = rule, .kept = kept_in_step_, .passes = passes});
  }
  void has_passed_quietly(int passes) override { move_on(passes); }
  void restore_step_statistics() override { kept_in_step_.restore(); }
  std::vector<FactorShape> factor_shapes() const override { return net_.factor_shapes(); }
  void leave_factors(std::span<const FactorShape> shapes) override { net_.leave_factors(shapes); }

  std::uint64_t batch_size() const override { return batch_size_of(net_); }

 private:
  // From the last passes to those that follow.
  void move_on(int passes) {
    span_.first += static_cast<std::uint64_t>(last_passes_);
    last_passes_ = passes;
  }
  // Into their arena, where those who look at all of them do so.
  void bring_weights() {
    for (const ParameterSlot& slot : layout().slots()) {
      if (slot.is_statistic) continue;
      parts_.backend->copy(slot.count(), place_ + slot.offset, weights().data() + slot.offset);
    }
    read_weights_from(nullptr);
  }
  Result<float> forward(Net::WeightsNeeded weights_needed) {
    const Instant start = parts_.clock.now();
    net_.on_weights_needed(weights_needed);
    auto loss = net_.forward();
    net_.on_weights_needed(nullptr);
    if (loss && weights_needed) SPEEDO_TRY(weights_needed({0, layout().element_count()}));
    gone_forward_ += parts_.clock.now() - start;
    return loss;
  }

  const Parts parts_;
  Net& net_;
  KeptValues statistics_;    // as the run found them
  KeptValues kept_in_step_;  // as a quiet step found it
  const float* place_ = nullptr;  // of the weights; null: their arena
  BatchSpan span_{};     // of the last passes
  int last_passes_ = 0;
  std::chrono::nanoseconds gone_forward_{0};
  std::int64_t skipped_told_ = 0;
};

}  // namespace

std::uint64_t batch_size_of(const Net& net) {
  for (const Net::LayerView& view : net.layers()) {
    const bool is_source = view.bottoms.empty() && !view.tops.empty();
    if (!is_source || view.tops[0]->shape().axes() == 0) continue;
    return static_cast<std::uint64_t>(view.tops[0]->shape()[0]);
  }
  return 0;
}

Result<std::unique_ptr<Learner>> make_net_learner(const TrainerParts& parts,
                                                  const LearnerOptions& options) {
  NetLearner::Parts made{.clock = parts.platform->clock(),
                         .backend = {},
                         .feeds = {},
                         .nets = {},
                         .take_parser_deaths = parts.take_parser_deaths};
  if (parts.choose_kernels) SPEEDO_TRY(parts.choose_kernels(options.job));
  SPEEDO_ASSIGN(made.backend, parts.make_backend());
  made.feeds = parts.make_feeds();
  const SolverOptions where{.backend = made.backend.get(),
                            .feeds = made.feeds.get(),
                            .base = options.job.base,
                            .start_fraction = options.start_fraction,
                            .shares_gradients = parts.shares_memory};
  if (parts.admit) SPEEDO_TRY(parts.admit(options.job, options.solver, where));
  SPEEDO_ASSIGN(made.nets, create_nets(options.solver, where));
  made.nets.train->count_layers(&options.progress);
  return std::unique_ptr<Learner>(std::make_unique<NetLearner>(std::move(made)));
}

}  // namespace speedo
