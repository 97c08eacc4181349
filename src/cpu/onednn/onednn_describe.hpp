#pragma once

#include <optional>
#include <string>

#include "cpu/convolution/convolution_kernels.hpp"
#include "cpu/onednn/onednn_engine.hpp"

namespace speedo::cpu::onednn {

enum class ConvolutionMethod { kDirect, kWinograd };

// How to compute one pass of a convolution over some samples.
struct PassPlan {
  ConvolutionPass pass = ConvolutionPass::kForward;
  ConvolutionMethod method = ConvolutionMethod::kDirect;
  CpuPrecision precision = CpuPrecision::kFloat32;
  std::int64_t samples = 1;
};

// What oneDNN would do: its kernel, and the kernel's operands as they must lie.
struct PassDescription {
  dnnl::primitive_desc_base primitive;
  dnnl::memory::desc src, weights, bias, dst, scratchpad;

  std::string implementation() const;  // oneDNN's name for it
};

// The operands as they lie with their owners: in float32, the weights in plain order.
struct StoredOperands {
  dnnl::memory::desc src, weights, dst;
};
// Requires: describe() found something.
StoredOperands stored_operands(const ConvolutionShape& shape, std::int64_t samples);
// The weights of a part of the outputs or channels, as they lie among those of the whole.
dnnl::memory::desc weights_within(const ConvolutionShape& whole, const ConvolutionShape& part);

// `weights`: the order that the kernel's weights must have; null lets oneDNN choose. Nothing if
// oneDNN cannot do it, only by its reference loops or im2col, or by a kernel that errs.
std::optional<PassDescription> describe(const ConvolutionShape& shape, const PassPlan& plan,
                                        const dnnl::memory::desc* weights = nullptr);

}  // namespace speedo::cpu::onednn
