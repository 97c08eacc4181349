// Convolution by oneDNN. Weights lie in plain order with their owner; each pass copies them to (or
// adds them from) the order of its kernel.

#include <algorithm>
#include <optional>
#include <vector>

#include <speedo/base/assert.hpp>

#include "cpu/channels.hpp"
#include "cpu/elementwise.hpp"
#include "cpu/onednn.hpp"
#include "cpu/onednn_pass.hpp"
#include "cpu/onednn_weights.hpp"

namespace speedo::cpu {
namespace {

using onednn::PassKernels;
using onednn::WeightsReorder;

constexpr std::int64_t kGrain = 16384;

class OneDnnKernels final : public ConvolutionKernels {
 public:
  OneDnnKernels(const ConvolutionShape& shape, const Workplace& workplace)
      : shape_(shape),
        pool_(workplace.pool),
        scratch_(workplace.scratch),
        precision_(workplace.precision) {}

  void reserve(ConvolutionPass pass) override {
    Pass& made = passes_[index(pass)];
    made.kernels.emplace(shape_, pass, precision_, pool_);
    made.weight_floats = aligned(
        static_cast<std::int64_t>((made.kernels->weights().get_size() + 3) / sizeof(float)));
    const std::int64_t scratch = made.kernels->scratch_floats();
    const std::int64_t bias = aligned(shape_.outputs);
    if (pass == ConvolutionPass::kBackwardWeights) {
      const std::int64_t sums = made.kernels->runs_max() > 1 ? 2 : 1;
      scratch_.reserve(scratch + sums * (made.weight_floats + bias));
    } else {
      scratch_.reserve(scratch, made.weight_floats + bias);
    }
  }

  std::string name(ConvolutionPass pass) const override {
    return "onednn " + passes_[index(pass)].kernels->implementation();
  }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    Pass& pass = prepare(ConvolutionPass::kForward);
    float* own_weights = scratch_.shared();
    if (bias == nullptr) {
      float* none = own_weights + pass.weight_floats;
      fill(shape_.outputs, 0.0F, none);
      bias = none;
    }
    pass.reorder->run(weights, own_weights);
    pass.kernels->place_weights(own_weights);
    for_each_run(pass, [&](PassKernels::Run run, int thread) {
      pass.kernels->run(thread, run.samples, at_src(src, run), nullptr, bias, at_dst(dst, run),
                        scratch_.block(thread));
    });
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    Pass& pass = prepare(ConvolutionPass::kBackwardData);
    float* own_weights = scratch_.shared();
    pass.reorder->run(weights, own_weights);
    pass.kernels->place_weights(own_weights);
    for_each_run(pass, [&](PassKernels::Run run, int thread) {
      pass.kernels->run(thread, run.samples, at_src(src_grad, run), nullptr, nullptr,
                        at_dst(dst_grad, run), scratch_.block(thread));
    });
  }

  // Each thread sums in an array of its own; they are added in the order of the threads, so that
  // the same thread count always gives the same sum.
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    if (weights_grad == nullptr) {
      if (bias_grad == nullptr) return;
      sum_channels(pool_, dst_array(shape_), shape_.dst_layout, nullptr, dst_grad, nullptr,
                   bias_grad);
      return;
    }
    Pass& pass = prepare(ConvolutionPass::kBackwardWeights);
    const std::int64_t size = pass.weight_floats + aligned(shape_.outputs);
    for_each_run(pass, [&](PassKernels::Run run, int thread) {
      const bool is_first = run.first == pool_.divide(shape_.batch, 1).begin(thread);
      float* all = sums(pass, thread);
      float* own = is_first ? all : all + size;
      pass.kernels->run(thread, run.samples, at_src(src, run), own, own + pass.weight_floats,
                        at_dst(dst_grad, run), scratch_.block(thread));
      if (!is_first) axpby(size, 1.0F, own, 1.0F, all);
    });
    add_up_threads(pass, size);
    pass.reorder->run(sums(pass, 0), weights_grad);
    if (bias_grad != nullptr) {
      axpby(shape_.outputs, 1.0F, sums(pass, 0) + pass.weight_floats, 1.0F, bias_grad);
    }
  }

 private:
  struct Pass {
    std::optional<PassKernels> kernels;
    std::optional<WeightsReorder> reorder;
    std::int64_t weight_floats = 0;  // in the kernel's order
  };

  static std::size_t index(ConvolutionPass pass) { return static_cast<std::size_t>(pass); }

  Pass& prepare(ConvolutionPass which) {
    Pass& pass = passes_[index(which)];
    SPEEDO_ASSERT(pass.kernels.has_value());
    if (pass.reorder.has_value()) return pass;
    pass.kernels->prepare(pool_.size());
    const dnnl::memory::desc plain = onednn::stored_operands(shape_, 1).weights;
    if (which == ConvolutionPass::kBackwardWeights) {
      pass.reorder.emplace(pass.kernels->weights(), plain, WeightsReorder::Mode::kAdd);
    } else {
      pass.reorder.emplace(plain, pass.kernels->weights(), WeightsReorder::Mode::kCopy);
    }
    return pass;
  }

  // Calls body(run, thread) for the whole batch.
  template <class Body>
  void for_each_run(const Pass& pass, const Body& body) {
    pool_.split(shape_.batch, 1, [&](std::int64_t first, std::int64_t last, int thread) {
      pass.kernels->for_each_run(first, last, [&](PassKernels::Run run) { body(run, thread); });
    });
  }

  const float* at_src(const float* src, PassKernels::Run run) const {
    const ArrayShape sample{1, shape_.channels, count_of(shape_.src_size)};
    return src + run.first * sample.storage_count(shape_.src_layout);
  }
  const float* at_dst(const float* dst, PassKernels::Run run) const {
    const ArrayShape sample{1, shape_.outputs, count_of(shape_.dst_size)};
    return dst + run.first * sample.storage_count(shape_.dst_layout);
  }
  // A thread's sums of the gradients by weights and bias, after its kernels' scratch memory.
  float* sums(const Pass& pass, int thread) {
    return scratch_.block(thread) + pass.kernels->scratch_floats();
  }

  // Into those of thread 0.
  void add_up_threads(const Pass& pass, std::int64_t size) {
    const auto threads = static_cast<int>(pool_.divide(shape_.batch, 1).parts);
    if (threads == 1) return;
    pool_.split(size, kGrain, [&](std::int64_t first, std::int64_t last, int) {
      for (int thread = 1; thread < threads; ++thread) {
        axpby(last - first, 1.0F, sums(pass, thread) + first, 1.0F, sums(pass, 0) + first);
      }
    });
  }

  ConvolutionShape shape_;
  ThreadPool& pool_;
  Scratch& scratch_;
  CpuPrecision precision_;
  std::array<Pass, kConvolutionPasses.size()> passes_;
};

}  // namespace

bool onednn_serves(const ConvolutionShape& shape, ConvolutionPass pass) {
  const bool is_empty = shape.batch == 0 || count_of(shape.src_size) == 0;
  return !is_empty && onednn::describe(shape, onednn::PassPlan{.pass = pass}).has_value();
}

std::unique_ptr<ConvolutionKernels> make_onednn_kernels(const ConvolutionShape& shape,
                                                        const Workplace& workplace) {
  return std::make_unique<OneDnnKernels>(shape, workplace);
}

}  // namespace speedo::cpu
