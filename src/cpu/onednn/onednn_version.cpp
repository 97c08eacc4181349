#include "cpu/onednn/onednn_version.hpp"

namespace speedo::cpu::onednn {
namespace {

using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
using dnnl::prop_kind;

#if DNNL_VERSION_MAJOR >= 3

convolution_forward::primitive_desc forward(const ConvolutionTask& t,
                                            const dnnl::primitive_attr& attributes,
                                            const dnnl::engine& engine) {
  return {engine,          prop_kind::forward_training,
          t.algorithm,     t.src,
          t.weights,       t.bias,
          t.dst,           t.strides,
          t.dilation,      t.padding_before,
          t.padding_after, attributes};
}

convolution_backward_data::primitive_desc backward_data(const ConvolutionTask& t,
                                                        const ConvolutionTask& hint,
                                                        const dnnl::primitive_attr& attributes,
                                                        const dnnl::engine& engine) {
  return {engine,          t.algorithm,
          t.src,           t.weights,
          t.dst,           t.strides,
          t.dilation,      t.padding_before,
          t.padding_after, forward(hint, {}, engine),
          attributes};
}

convolution_backward_weights::primitive_desc backward_weights(
    const ConvolutionTask& t, const ConvolutionTask& hint, const dnnl::primitive_attr& attributes,
    const dnnl::engine& engine) {
  return {engine,
          t.algorithm,
          t.src,
          t.weights,
          t.bias,
          t.dst,
          t.strides,
          t.dilation,
          t.padding_before,
          t.padding_after,
          forward(hint, {}, engine),
          attributes};
}

#else

convolution_forward::primitive_desc forward(const ConvolutionTask& t,
                                            const dnnl::primitive_attr& attributes,
                                            const dnnl::engine& engine) {
  return {{prop_kind::forward_training, t.algorithm, t.src, t.weights, t.bias, t.dst, t.strides,
           t.dilation, t.padding_before, t.padding_after},
          attributes,
          engine};
}

convolution_backward_data::primitive_desc backward_data(const ConvolutionTask& t,
                                                        const ConvolutionTask& hint,
                                                        const dnnl::primitive_attr& attributes,
                                                        const dnnl::engine& engine) {
  return {{t.algorithm, t.src, t.weights, t.dst, t.strides, t.dilation, t.padding_before,
           t.padding_after},
          attributes,
          engine,
          forward(hint, {}, engine)};
}

convolution_backward_weights::primitive_desc backward_weights(
    const ConvolutionTask& t, const ConvolutionTask& hint, const dnnl::primitive_attr& attributes,
    const dnnl::engine& engine) {
  return {{t.algorithm, t.src, t.weights, t.bias, t.dst, t.strides, t.dilation, t.padding_before,
           t.padding_after},
          attributes,
          engine,
          forward(hint, {}, engine)};
}

#endif

}  // namespace

dnnl::primitive_desc_base describe_forward(const ConvolutionTask& task,
                                           const dnnl::primitive_attr& attributes,
                                           const dnnl::engine& engine) {
  return forward(task, attributes, engine);
}

dnnl::primitive_desc_base describe_backward_data(const ConvolutionTask& task,
                                                 const ConvolutionTask& forward,
                                                 const dnnl::primitive_attr& attributes,
                                                 const dnnl::engine& engine) {
  return backward_data(task, forward, attributes, engine);
}

dnnl::primitive_desc_base describe_backward_weights(const ConvolutionTask& task,
                                                    const ConvolutionTask& forward,
                                                    const dnnl::primitive_attr& attributes,
                                                    const dnnl::engine& engine) {
  return backward_weights(task, forward, attributes, engine);
}

dnnl::memory::dims dims_of(const dnnl::memory::desc& description) {
#if DNNL_VERSION_MAJOR >= 3
  return description.get_dims();
#else
  return description.dims();
#endif
}

}  // namespace speedo::cpu::onednn
