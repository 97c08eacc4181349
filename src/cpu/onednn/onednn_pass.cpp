#include "cpu/onednn/onednn_pass.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "cpu/onednn/onednn_winograd.hpp"

namespace speedo::cpu::onednn {
namespace {

// Runs with more scratch memory gained nothing.
constexpr std::int64_t kScratchFloatsWanted = std::int64_t{8} << 20U;

constexpr std::size_t kWeights = 1;  // their place among a kernel's arguments

std::int64_t floats_of(const dnnl::memory::desc& description) {
  return aligned(static_cast<std::int64_t>((description.get_size() + 3) / sizeof(float)));
}

// What to try, the best first. A single sample always is a run of the same size, where others may
// lack a kernel, or one that reads the weights in the same order.
std::vector<PassPlan> wishes(const ConvolutionShape& shape, const PassPlan& longest,
                             CpuPrecision precision) {
  std::vector<PassPlan> plans;
  if (precision != CpuPrecision::kFloat32) {
    plans.push_back(longest);
    plans.back().precision = precision;
  }
  if (suits_winograd(shape, longest.samples)) {
    plans.push_back(longest);
    plans.back().method = ConvolutionMethod::kWinograd;
  }
  plans.push_back(longest);
  if (longest.samples > 1) {
    plans.push_back(longest);
    plans.back().samples = 1;
  }
  return plans;
}

}  // namespace

std::optional<PassKernels> PassKernels::plan(const ConvolutionShape& shape, ConvolutionPass pass,
                                             CpuPrecision precision, std::int64_t batch_parts) {
  const ThreadPool::Division parts(shape.batch, 1, batch_parts);
  PassPlan longest;
  longest.pass = pass;
  longest.samples = (shape.batch + parts.parts - 1) / parts.parts;
  for (const PassPlan& wish : wishes(shape, longest, precision)) {
    PassKernels made(shape, wish);
    if (made.shorten_runs() && made.add_sizes(parts.parts)) return made;
  }
  return std::nullopt;
}

bool PassKernels::shorten_runs() {
  const bool winograd = plan_.method == ConvolutionMethod::kWinograd;
  for (;;) {
    sizes_.clear();
    if (!add_size(plan_.samples)) return false;
    if (plan_.samples == 1 || scratch_floats() <= kScratchFloatsWanted) return true;
    if (winograd && winograd_tiles(shape_) * plan_.samples < 2 * kWinogradTilesEnough) return true;
    plan_.samples = (plan_.samples + 1) / 2;
  }
}

bool PassKernels::add_sizes(std::int64_t batch_parts) {
  const ThreadPool::Division parts(shape_.batch, 1, batch_parts);
  bool all = true;
  for (std::int64_t part = 0; part < parts.parts; ++part) {
    for_each_run(0, parts.size(part), [&](Run run) { all = all && add_size(run.samples); });
    runs_max_ = std::max(runs_max_, runs_of(parts.size(part)));
  }
  return all;
}

// All sizes read the weights in the order of the first.
bool PassKernels::add_size(std::int64_t samples) {
  for (const Size& size : sizes_) {
    if (size.plan.samples == samples) return true;
  }
  PassPlan plan = plan_;
  plan.samples = samples;
  auto made =
      describe(shape_, plan, sizes_.empty() ? nullptr : &sizes_.front().description.weights);
  if (!made.has_value()) return false;
  const StoredOperands stored = stored_operands(shape_, samples);
  const std::int64_t src_floats = made->src == stored.src ? 0 : floats_of(made->src);
  const std::int64_t dst_floats = made->dst == stored.dst ? 0 : floats_of(made->dst);
  const std::int64_t scratchpad_floats = floats_of(made->scratchpad);
  sizes_.push_back({plan, std::move(*made), scratchpad_floats, src_floats, dst_floats, {}, {}, {}});
  return true;
}

std::int64_t PassKernels::scratch_floats() const {
  std::int64_t floats = 0;
  for (const Size& size : sizes_) {
    floats = std::max(floats, size.scratchpad_floats + size.src_floats + size.dst_floats);
  }
  return floats;
}

void PassKernels::make(int threads) {
  thread_stream();
  for (Size& size : sizes_) make(size, threads);
}

void PassKernels::make(Size& size, int threads) {
  const PassDescription& made = size.description;
  const StoredOperands stored = stored_operands(shape_, size.plan.samples);
  const bool data = size.plan.pass == ConvolutionPass::kBackwardData;
  const bool weights = size.plan.pass == ConvolutionPass::kBackwardWeights;
  const std::vector<BoundPrimitive::Argument> arguments{
      {data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, made.src},
      {weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, made.weights},
      {weights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, data ? dnnl::memory::desc() : made.bias},
      {data || weights ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, made.dst},
      {DNNL_ARG_SCRATCHPAD, made.scratchpad}};
  const dnnl::primitive primitive(made.primitive.get());
  for (int thread = 0; thread < threads; ++thread) {
    size.kernel.emplace_back(primitive, arguments);
    if (size.src_floats > 0) size.convert_src.push_back(make_reorder(stored.src, made.src));
    if (size.dst_floats > 0) size.convert_dst.push_back(make_reorder(stored.dst, made.dst));
  }
}

void PassKernels::place_weights(int thread, const float* weights) {
  for (Size& size : sizes_) size.kernel[static_cast<std::size_t>(thread)].place(kWeights, weights);
}

void PassKernels::run(int thread, std::int64_t samples, const Arrays& arrays) {
  auto [src, weights, bias, dst, scratch] = arrays;
  const auto at = static_cast<std::size_t>(thread);
  const auto size = std::find_if(sizes_.begin(), sizes_.end(),
                                 [&](const Size& each) { return each.plan.samples == samples; });
  SPEEDO_ASSERT(size != sizes_.end());
  float* src_copy = scratch + size->scratchpad_floats;
  if (size->src_floats > 0) {
    size->convert_src[at].run({src, src_copy});
    src = src_copy;
  }
  if (size->dst_floats > 0) {
    float* dst_copy = src_copy + size->src_floats;
    size->convert_dst[at].run({dst, dst_copy});
    dst = dst_copy;
  }
  size->kernel[at].run({src, weights, bias, dst, scratch});
}

}  // namespace speedo::cpu::onednn
