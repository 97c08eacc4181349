// Convolution by oneDNN. Weights lie in plain order with their owner; each pass copies them to (or
// adds them from) the order of its kernel.

#include <algorithm>
#include <optional>
#include <vector>

#include <speedo/base/assert.hpp>

#include "base/log.hpp"
#include "cpu/elementwise/channels.hpp"
#include "cpu/elementwise/elementwise.hpp"
#include "cpu/onednn/onednn.hpp"
#include "cpu/onednn/onednn_division.hpp"
#include "cpu/onednn/onednn_pass.hpp"
#include "cpu/onednn/onednn_weights.hpp"

namespace speedo::cpu {
namespace {

using onednn::PassKernels;
using onednn::WeightsReorder;

constexpr std::int64_t kSummedFloats = 16384;

// How a pass is computed.
struct PassWork {
  onednn::WorkDivision division;
  ConvolutionShape part;  // what one part of the channels is
  PassKernels kernels;
};

// Nothing if oneDNN lacks a kernel for some of it.
std::optional<PassWork> plan_pass(const ConvolutionShape& shape, ConvolutionPass pass,
                                  const Context& context) {
  const int threads = context.pool.size();
  std::vector divisions{onednn::divide_work(shape, pass, context.precision, threads)};
  if (divisions[0].channel_parts > 1) divisions.push_back(onednn::divide_samples(shape, threads));
  for (const onednn::WorkDivision& division : divisions) {
    const ConvolutionShape part = onednn::part_of(shape, pass, division);
    auto kernels = PassKernels::plan(part, pass, context.precision, division.batch_parts);
    if (kernels.has_value()) return PassWork{division, part, std::move(*kernels)};
  }
  return std::nullopt;
}

class OneDnnKernels final : public ConvolutionKernels {
 public:
  OneDnnKernels(const ConvolutionShape& shape, const Context& context)
      : shape_(shape),
        pool_(context.pool),
        scratch_(context.scratch),
        precision_(context.precision) {}

  bool reserve(ConvolutionPass which) override {
    auto work = plan_pass(shape_, which, {pool_, scratch_, precision_});
    SPEEDO_ASSERT(work.has_value());
    Pass& pass = passes_[index(which)];
    pass.which = which;
    pass.division = work->division;
    pass.part = std::move(work->part);
    pass.kernels = std::move(work->kernels);
    if (!make(pass)) return false;
    pass.weight_floats = aligned(
        static_cast<std::int64_t>((pass.kernels->weights().get_size() + 3) / sizeof(float)));
    const bool copies = pass.division.channel_parts > 1 && pass.kernels->samples_max() > 1;
    const std::int64_t floats = pass.kernels->samples_max() * slice(pass, {}, 0).floats;
    pass.copy_floats = copies ? aligned(floats) : 0;
    const std::int64_t own = pass.kernels->scratch_floats() + pass.copy_floats;
    if (which == ConvolutionPass::kBackwardWeights) {
      const std::int64_t sums = pass.kernels->runs_max() > 1 ? 2 : 1;
      scratch_.reserve(own + sums * sum_floats(pass));
    } else {
      scratch_.reserve(own,
                       pass.division.channel_parts * pass.weight_floats + aligned(shape_.outputs));
    }
    return true;
  }

  std::string name(ConvolutionPass pass) const override {
    return "onednn " + passes_[index(pass)].kernels->implementation();
  }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    Pass& pass = reserved(ConvolutionPass::kForward);
    place_weights(pass, weights);
    if (bias == nullptr) {
      float* none = scratch_.shared() + pass.division.channel_parts * pass.weight_floats;
      fill(shape_.outputs, 0.0F, none);
      bias = none;
    }
    for_each_run(pass, [&](Run run, int thread, std::int64_t part) {
      float* to = place_of(pass, run, thread, part, dst);
      pass.kernels->run(
          thread, run.samples,
          {at_src(src, run), nullptr, bias + part * pass.part.outputs, to, scratch_.block(thread)});
      // Not oneDNN's: its ReLU gives 0 for NaN. What the kernel has written is still in the cache.
      if (shape_.activation) {
        map(*shape_.activation, run.samples * slice(pass, run, part).floats, to, to);
      }
      put_back(pass, run, part, to, dst);
    });
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    Pass& pass = reserved(ConvolutionPass::kBackwardData);
    place_weights(pass, weights);
    for_each_run(pass, [&](Run run, int thread, std::int64_t part) {
      float* to = place_of(pass, run, thread, part, src_grad);
      pass.kernels->run(thread, run.samples,
                        {to, nullptr, nullptr, at_dst(dst_grad, run), scratch_.block(thread)});
      put_back(pass, run, part, to, src_grad);
    });
  }

  // Each unit sums in its thread's array; those of the batch's parts are added in their order, so
  // that the same thread count always gives the same sum.
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    if (weights_grad == nullptr) {
      if (bias_grad == nullptr) return;
      sum_channels(pool_, {dst_array(shape_), shape_.dst_layout}, nullptr, dst_grad, nullptr,
                   bias_grad);
      return;
    }
    Pass& pass = reserved(ConvolutionPass::kBackwardWeights);
    const std::int64_t size = sum_floats(pass);
    for_each_run(pass, [&](Run run, int thread, std::int64_t part) {
      float* all = sums(pass, thread);
      float* own = run.is_first ? all : all + size;
      pass.kernels->run(thread, run.samples,
                        {at_src(src, run), own, own + pass.weight_floats,
                         taken(pass, run, thread, part, dst_grad), scratch_.block(thread)});
      if (!run.is_first) axpby(size, 1.0F, own, 1.0F, all);
    });
    add_up_batch_parts(pass);
    const std::int64_t count = weight_count(pass.part);
    for_each_part(pass, [&](std::int64_t part) {
      const float* all = sums(pass, static_cast<int>(part));
      pass.reorders[static_cast<std::size_t>(part)].run(all, weights_grad + part * count);
      if (bias_grad == nullptr) return;
      axpby(pass.part.outputs, 1.0F, all + pass.weight_floats, 1.0F,
            bias_grad + part * pass.part.outputs);
    });
  }

 private:
  struct Pass {
    ConvolutionPass which = ConvolutionPass::kForward;
    onednn::WorkDivision division;
    ConvolutionShape part;  // what one part of the channels is
    std::optional<PassKernels> kernels;
    std::vector<WeightsReorder> reorders;  // by part of the channels
    std::int64_t weight_floats = 0;        // of a part, in the kernel's order
    std::int64_t copy_floats = 0;          // of a part's channels in a run, where they are copied
  };
  struct Run {
    std::int64_t first = 0, samples = 0;
    bool is_first = false;  // of its unit
  };
  // The channels of a part in a run: of the first sample, from sample to sample, of each.
  struct Slice {
    std::int64_t offset, step, floats;
  };

  static std::size_t index(ConvolutionPass pass) { return static_cast<std::size_t>(pass); }

  Pass& reserved(ConvolutionPass which) {
    Pass& pass = passes_[index(which)];
    SPEEDO_ASSERT(!pass.reorders.empty());
    return pass;
  }

  // False if oneDNN cannot generate the code of what it has described (its memory may lack).
  bool make(Pass& pass) {
    const dnnl::memory::desc plain = onednn::weights_within(shape_, pass.part);
    const dnnl::memory::desc& own = pass.kernels->weights();
    const bool adds = pass.which == ConvolutionPass::kBackwardWeights;
    try {
      pass.kernels->make(pool_.size());
      for (std::int64_t part = 0; part < pass.division.channel_parts; ++part) {
        pass.reorders.emplace_back(adds ? own : plain, adds ? plain : own,
                                   adds ? WeightsReorder::Mode::kAdd : WeightsReorder::Mode::kCopy);
      }
    } catch (const dnnl::error& error) {
      SPEEDO_WARN(
          "oneDNN cannot make a kernel that it has ({}): OpenBLAS computes in its place, "
          "which may take longer",
          error.what());
      return false;
    }
    return true;
  }

  // Copies the weights to the kernels' order, and tells these where they are.
  void place_weights(Pass& pass, const float* weights) {
    float* own = scratch_.shared();
    const bool data = pass.which == ConvolutionPass::kBackwardData;
    const std::int64_t step = weight_count(pass.part) / (data ? shape_.outputs : 1);
    for_each_part(pass, [&](std::int64_t part) {
      pass.reorders[static_cast<std::size_t>(part)].run(weights + part * step,
                                                        own + part * pass.weight_floats);
    });
    for (std::int64_t unit = 0; unit < pass.division.units(); ++unit) {
      pass.kernels->place_weights(static_cast<int>(unit),
                                  own + unit % pass.division.channel_parts * pass.weight_floats);
    }
  }

  // Calls body(part) for the parts of the channels, whose number is also that of their first unit.
  template <class Body>
  void for_each_part(const Pass& pass, const Body& body) {
    pool_.split(pass.division.channel_parts, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t part = first; part < last; ++part) body(part);
    });
  }

  // Calls body(run, thread, part of the channels) for everything; unit u is thread u's.
  template <class Body>
  void for_each_run(const Pass& pass, const Body& body) {
    const ThreadPool::Division batch(shape_.batch, 1, pass.division.batch_parts);
    pool_.split(pass.division.units(), 1, [&](std::int64_t unit, std::int64_t, int thread) {
      const std::int64_t rows = unit / pass.division.channel_parts;
      const std::int64_t first = batch.begin(rows);
      pass.kernels->for_each_run(first, batch.end(rows), [&](PassKernels::Run run) {
        body(Run{run.first, run.samples, run.first == first}, thread,
             unit % pass.division.channel_parts);
      });
    });
  }

  const float* at_src(const float* src, Run run) const {
    return src + run.first * src_sample().storage_count(shape_.src_layout);
  }
  const float* at_dst(const float* dst, Run run) const {
    return dst + run.first * dst_sample().storage_count(shape_.dst_layout);
  }
  ArrayShape src_sample() const { return {1, shape_.channels, count_of(shape_.src_size)}; }
  ArrayShape dst_sample() const { return {1, shape_.outputs, count_of(shape_.dst_size)}; }

  Slice slice(const Pass& pass, Run run, std::int64_t part) const {
    const bool data = pass.which == ConvolutionPass::kBackwardData;
    const std::int64_t step = data ? src_sample().storage_count(shape_.src_layout)
                                   : dst_sample().storage_count(shape_.dst_layout);
    const std::int64_t floats = step / pass.division.channel_parts;
    return {run.first * step + part * floats, step, floats};
  }
  static bool is_copied(const Pass& pass, Run run) {
    return pass.division.channel_parts > 1 && run.samples > 1;
  }
  float* copy(const Pass& pass, int thread) {
    return scratch_.block(thread) + pass.kernels->scratch_floats();
  }

  // Where a part's channels are computed: in `array` itself if they lie together there.
  float* place_of(const Pass& pass, Run run, int thread, std::int64_t part, float* array) {
    return is_copied(pass, run) ? copy(pass, thread) : array + slice(pass, run, part).offset;
  }
  void put_back(const Pass& pass, Run run, std::int64_t part, const float* from,
                float* array) const {
    if (!is_copied(pass, run)) return;
    const Slice to = slice(pass, run, part);
    for (std::int64_t n = 0; n < run.samples; ++n) {
      std::copy_n(from + n * to.floats, to.floats, array + to.offset + n * to.step);
    }
  }
  const float* taken(const Pass& pass, Run run, int thread, std::int64_t part, const float* array) {
    const Slice from = slice(pass, run, part);
    if (!is_copied(pass, run)) return array + from.offset;
    float* to = copy(pass, thread);
    for (std::int64_t n = 0; n < run.samples; ++n) {
      std::copy_n(array + from.offset + n * from.step, from.floats, to + n * from.floats);
    }
    return to;
  }

  // The gradients by weights and bias of a unit.
  std::int64_t sum_floats(const Pass& pass) const {
    return pass.weight_floats + aligned(pass.part.outputs);
  }
  float* sums(const Pass& pass, int thread) { return copy(pass, thread) + pass.copy_floats; }

  // Into those of the batch's first part.
  void add_up_batch_parts(const Pass& pass) {
    const std::int64_t size = sum_floats(pass), parts = pass.division.channel_parts;
    if (pass.division.batch_parts == 1) return;
    pool_.split(size, kSummedFloats, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t unit = parts; unit < pass.division.units(); ++unit) {
        axpby(last - first, 1.0F, sums(pass, static_cast<int>(unit)) + first, 1.0F,
              sums(pass, static_cast<int>(unit % parts)) + first);
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

bool onednn_serves(const ConvolutionShape& shape, ConvolutionPass pass,
                   const Context& context) {
  const bool is_empty = shape.batch == 0 || count_of(shape.src_size) == 0;
  return uses_onednn() && !is_empty && plan_pass(shape, pass, context).has_value();
}

std::unique_ptr<ConvolutionKernels> make_onednn_kernels(const ConvolutionShape& shape,
                                                        const Context& context) {
  return std::make_unique<OneDnnKernels>(shape, context);
}

}  // namespace speedo::cpu
