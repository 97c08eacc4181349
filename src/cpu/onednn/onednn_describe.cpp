#include "cpu/onednn/onednn_describe.hpp"

#include <array>

#include "cpu/onednn/onednn_faults.hpp"
#include "cpu/onednn/onednn_version.hpp"

namespace speedo::cpu::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr std::size_t kAxesMax = 3;
constexpr auto kFloat = memory::data_type::f32;

// oneDNN's word for a layout of 1 to 3 spatial axes; `undef` if it has none.
Tag data_tag(Layout layout, std::int64_t channels, std::size_t axes) {
  using Row = std::array<Tag, kAxesMax>;
  static constexpr Row kPlain{Tag::ncw, Tag::nchw, Tag::ncdhw};
  static constexpr Row kLast{Tag::nwc, Tag::nhwc, Tag::ndhwc};
  static constexpr Row kBlocked8{Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c};
  static constexpr Row kBlocked16{Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c};
  if (axes < 1 || axes > kAxesMax) return Tag::undef;
  switch (layout.block) {
    case 1:
      return kPlain[axes - 1];
    case 8:
      return kBlocked8[axes - 1];
    case 16:
      return kBlocked16[axes - 1];
    default:
      return layout.block == channels ? kLast[axes - 1] : Tag::undef;
  }
}

// One block that holds all channels is both blocked and channels last, and a single channel is both
// plain and channels last: such an array is called what the other one is.
struct DataTags {
  Tag src, dst;
};
DataTags data_tags(const ConvolutionShape& shape) {
  const std::size_t axes = shape.kernel.size();
  const auto is_last = [&](Layout layout, std::int64_t channels) {
    return layout.block == channels;
  };
  const auto is_only_last = [&](Layout layout, std::int64_t channels) {
    return is_last(layout, channels) && layout.block != 1 && layout.block != 8 &&
           layout.block != 16;
  };
  DataTags tags{data_tag(shape.src_layout, shape.channels, axes),
                data_tag(shape.dst_layout, shape.outputs, axes)};
  const bool both_last =
      is_last(shape.src_layout, shape.channels) && is_last(shape.dst_layout, shape.outputs);
  if (axes < 1 || axes > kAxesMax || !both_last) return tags;
  if (is_only_last(shape.src_layout, shape.channels) ||
      is_only_last(shape.dst_layout, shape.outputs)) {
    constexpr std::int64_t kAny = 24;  // any size that is no other layout's block
    tags.src = tags.dst = data_tag({kAny}, kAny, axes);
  }
  return tags;
}

memory::dims data_dims(std::int64_t samples, std::int64_t channels,
                       const std::vector<std::int64_t>& size) {
  memory::dims dims{samples, channels};
  dims.insert(dims.end(), size.begin(), size.end());
  return dims;
}

memory::dims weights_dims(const ConvolutionShape& shape) {
  memory::dims dims;
  if (shape.groups > 1) dims.push_back(shape.groups);
  dims.push_back(shape.outputs / shape.groups);
  dims.push_back(shape.channels / shape.groups);
  dims.insert(dims.end(), shape.kernel.begin(), shape.kernel.end());
  return dims;
}

// "ip" is a matrix product, for windows as large as the image.
bool is_served_well(const std::string& implementation) {
  return implementation.starts_with("jit") || implementation.starts_with("brg") ||
         implementation.starts_with("ip");
}

// Results are float32 in any precision.
ConvolutionTask make_task(const ConvolutionShape& shape, const PassPlan& plan, DataTags tags,
                          const memory::desc* weights) {
  const auto type = [&](bool is_result) {
    const bool rounded = plan.precision == CpuPrecision::kBfloat16 && !is_result;
    return rounded ? memory::data_type::bf16 : kFloat;
  };
  ConvolutionTask task;
  if (plan.method == ConvolutionMethod::kWinograd) {
    task.algorithm = dnnl::algorithm::convolution_winograd;
  }
  task.strides = shape.stride;
  task.padding_before = task.padding_after = shape.pad;
  for (const std::int64_t dilation : shape.dilation) task.dilation.push_back(dilation - 1);
  task.src = {data_dims(plan.samples, shape.channels, shape.src_size),
              type(plan.pass == ConvolutionPass::kBackwardData), tags.src};
  task.dst = {data_dims(plan.samples, shape.outputs, shape.dst_size),
              type(plan.pass == ConvolutionPass::kForward), tags.dst};
  task.bias = {{shape.outputs}, kFloat, Tag::x};
  task.weights = weights != nullptr
                     ? *weights
                     : memory::desc(weights_dims(shape),
                                    type(plan.pass == ConvolutionPass::kBackwardWeights), Tag::any);
  return task;
}

// The pass whose gradients `plan` computes.
ConvolutionTask forward_task(const ConvolutionShape& shape, PassPlan plan, DataTags tags) {
  plan.pass = ConvolutionPass::kForward;
  return make_task(shape, plan, tags, nullptr);
}

dnnl::primitive_attr make_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace

std::string PassDescription::implementation() const { return primitive.impl_info_str(); }

dnnl::memory::desc weights_within(const ConvolutionShape& whole, const ConvolutionShape& part) {
  const memory::dims dims = weights_dims(whole);
  memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return {weights_dims(part), kFloat, strides};
}

StoredOperands stored_operands(const ConvolutionShape& shape, std::int64_t samples) {
  const DataTags tags = data_tags(shape);
  return {{data_dims(samples, shape.channels, shape.src_size), kFloat, tags.src},
          weights_within(shape, shape),
          {data_dims(samples, shape.outputs, shape.dst_size), kFloat, tags.dst}};
}

std::optional<PassDescription> describe(const ConvolutionShape& shape, const PassPlan& plan,
                                        const memory::desc* weights) {
  const DataTags tags = data_tags(shape);
  if (tags.src == Tag::undef || tags.dst == Tag::undef) return std::nullopt;
  PassDescription made;
  try {
    thread_stream();
    const ConvolutionTask task = make_task(shape, plan, tags, weights);
    const dnnl::primitive_attr attributes = make_attributes();
    if (plan.pass == ConvolutionPass::kForward) {
      made.primitive = describe_forward(task, attributes, cpu_engine());
    } else {
      const auto of = plan.pass == ConvolutionPass::kBackwardData ? &describe_backward_data
                                                                  : &describe_backward_weights;
      made.primitive = of(task, forward_task(shape, plan, tags), attributes, cpu_engine());
    }
    made.src = task.src, made.bias = task.bias, made.dst = task.dst;
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
  const std::string implementation = made.implementation();
  if (!is_served_well(implementation)) return std::nullopt;
  if (has_fault(implementation, shape, plan.pass)) return std::nullopt;
  made.weights = made.primitive.query_md(
      dnnl::query::exec_arg_md,
      plan.pass == ConvolutionPass::kBackwardWeights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS);
  made.scratchpad = made.primitive.scratchpad_desc();
  return made;
}

}  // namespace speedo::cpu::onednn
