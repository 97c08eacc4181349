#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace speedo::cpu::onednn {

// All that oneDNN 2 and 3 want differently. The functions throw dnnl::error where oneDNN has no
// implementation.

struct ConvolutionTask {
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
  dnnl::memory::desc src, weights, bias, dst;
  // One element per spatial axis; dilation 0 is a dense kernel.
  dnnl::memory::dims strides, dilation, padding_before, padding_after;
};

dnnl::primitive_desc_base describe_forward(const ConvolutionTask& task,
                                           const dnnl::primitive_attr& attributes,
                                           const dnnl::engine& engine);
// `forward`: the pass that this one belongs to.
dnnl::primitive_desc_base describe_backward_data(const ConvolutionTask& task,
                                                 const ConvolutionTask& forward,
                                                 const dnnl::primitive_attr& attributes,
                                                 const dnnl::engine& engine);
dnnl::primitive_desc_base describe_backward_weights(const ConvolutionTask& task,
                                                    const ConvolutionTask& forward,
                                                    const dnnl::primitive_attr& attributes,
                                                    const dnnl::engine& engine);

dnnl::memory::dims dims_of(const dnnl::memory::desc& description);

}  // namespace speedo::cpu::onednn
