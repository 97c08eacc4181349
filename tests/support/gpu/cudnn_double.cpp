#include "support/gpu/cudnn_double.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <speedo/base/assert.hpp>

#include "support/gpu/cudnn_double_state.hpp"

namespace speedo::test {
namespace {

using gpu::ConvolutionPass;

CudnnDouble::State* active_cudnn = nullptr;

CudnnDouble::State& cudnn() {
  SPEEDO_ASSERT(active_cudnn != nullptr);
  return *active_cudnn;
}

double number(const void* scale) { return double{*static_cast<const float*>(scale)}; }

template <class Set, class Handle>
cudnnStatus_t cudnn_destroyed(Set& set, Handle handle, const char* call) {
  return set.destroy(handle, call) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

std::optional<ElementType> element_type(cudnnDataType_t type) {
  if (type == CUDNN_DATA_FLOAT) return ElementType::kFloat32;
  if (type == CUDNN_DATA_BFLOAT16) return ElementType::kBfloat16;
  return std::nullopt;
}

cudnnStatus_t set_tensor(cudnnTensorDescriptor_t handle, cudnnDataType_t type, int count,
                         const int* dims, const int* strides) {
  CudnnTensor* const tensor = cudnn().tensors.find(handle, "cudnnSetTensorNdDescriptor");
  const auto element = element_type(type);
  if (tensor == nullptr || !element || count < 4 || count > CUDNN_DIM_MAX) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  *tensor = {{dims, dims + count}, {strides, strides + count}, *element};
  const bool is_set = std::all_of(dims, dims + count, [](int dim) { return dim > 0; });
  return is_set ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t set_filter(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                         cudnnTensorFormat_t format, int count, const int* dims) {
  auto* const filter = cudnn().filters.find(handle, "cudnnSetFilterNdDescriptor");
  const auto element = element_type(type);
  if (filter == nullptr || !element || count < 4) return CUDNN_STATUS_BAD_PARAM;
  *filter = {{dims, dims + count}, format == CUDNN_TENSOR_NHWC, *element};
  const bool is_known = filter->is_last || format == CUDNN_TENSOR_NCHW;
  return is_known ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

constexpr auto set_convolution = [](
    cudnnConvolutionDescriptor_t handle, int count, const int* pad, const int* stride,
    const int* dilation, cudnnConvolutionMode_t mode, cudnnDataType_t type) -> cudnnStatus_t {
  CudnnTask* const task = cudnn().tasks.find(handle, "cudnnSetConvolutionNdDescriptor");
  if (task == nullptr || mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT || count < 2 ||
      count > 3) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  task->windows = {{pad, pad + count}, {stride, stride + count}, {dilation, dilation + count}};
  return CUDNN_STATUS_SUCCESS;
};

constexpr auto forward = [](
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t src_name, const void* src,
    cudnnFilterDescriptor_t weights_name, const void* weights,
    cudnnConvolutionDescriptor_t windows, cudnnConvolutionFwdAlgo_t algorithm, void* work,
    std::size_t work_bytes, const void* beta, cudnnTensorDescriptor_t dst_name, void* dst)
    -> cudnnStatus_t {
  const double scale = number(alpha), kept = number(beta);
  const CudnnDouble::State::Names names{handle, src_name, weights_name, windows, dst_name};
  const auto all = cudnn().problem_of(names);
  if (!all) return CUDNN_STATUS_BAD_PARAM;
  return cudnn().queue(
      names, {ConvolutionPass::kForward, algorithm},
      {{src, all->src.extent()}, {weights, all->weight_count()}, {dst, all->dst.extent()}},
      {work, work_bytes}, [=](const CudnnProblem& problem) {
        convolve(problem, src, weights, scale, kept, dst);
      });
};

float rectified(float value, bool keeps_nan) {
  if (std::isnan(value) && !keeps_nan) return 0.0F;
  return value < 0.0F ? 0.0F : value;
}

void rectify(const CudnnProblem& all, const float* bias, bool keeps_nan, float* dst) {
  const std::int64_t channels = all.dst.dims[1];
  CudnnTensor plane = all.dst;
  for (int n = 0; n < all.dst.dims[0]; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      plane.dims[0] = plane.dims[1] = 1;
      const std::int64_t from = std::int64_t{n} * all.dst.strides[0] + c * all.dst.strides[1];
      std::int64_t count = 1;
      for (std::size_t i = 2; i < plane.dims.size(); ++i) count *= plane.dims[i];
      for (std::int64_t p = 0; p < count; ++p) {
        std::int64_t at = from, rest = p;
        for (std::size_t i = plane.dims.size(); i-- > 2;) {
          at += rest % plane.dims[i] * plane.strides[i];
          rest /= plane.dims[i];
        }
        dst[at] = rectified(dst[at] + bias[c], keeps_nan);
      }
    }
  }
}

// Groups it does not do, so that somebody must.
constexpr auto forward_with_activation = [](
     cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t src_name, const void* src,
    cudnnFilterDescriptor_t weights_name, const void* weights,
    cudnnConvolutionDescriptor_t windows, cudnnConvolutionFwdAlgo_t algorithm, void* work,
    std::size_t work_bytes, const void* beta, cudnnTensorDescriptor_t z_name, const void*,
    cudnnTensorDescriptor_t bias_name, const void* bias, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t dst_name, void* dst)
    -> cudnnStatus_t {
  const double scale = number(alpha);
  CudnnDouble::State& state = cudnn();
  const CudnnDouble::State::Names names{handle, src_name, weights_name, windows, dst_name};
  const auto all = state.problem_of(names);
  const auto* const relu = state.activations.find(activation, "activation");
  const CudnnTensor* const offsets = state.tensors.find(bias_name, "bias");
  if (!all || relu == nullptr || relu->mode != CUDNN_ACTIVATION_RELU || offsets == nullptr ||
      number(beta) != 0.0 || z_name != dst_name) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  std::vector<int> expected(all->dst.dims.size(), 1);
  expected[1] = all->dst.dims[1];
  if (offsets->dims != expected) {
    state.report("a bias of other channels");
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (all->windows.groups > 1 || all->type != ElementType::kFloat32) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  ++state.fused;
  const bool keeps_nan = relu->keeps_nan;
  return state.queue(names, {ConvolutionPass::kForward, algorithm},
                     {{src, all->src.extent()},
                      {weights, all->weight_count()},
                      {bias, all->dst.dims[1]},
                      {dst, all->dst.extent()}},
                     {work, work_bytes}, [=](const CudnnProblem& problem) {
                       convolve(problem, src, weights, scale, 0.0, dst);
                       rectify(problem, static_cast<const float*>(bias), keeps_nan,
                               static_cast<float*>(dst));
                     });
};

constexpr auto backward_data = [](
    cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t weights_name,
    const void* weights, cudnnTensorDescriptor_t dst_name, const void* dst,
    cudnnConvolutionDescriptor_t windows, cudnnConvolutionBwdDataAlgo_t algorithm, void* work,
    std::size_t work_bytes, const void* beta, cudnnTensorDescriptor_t src_name, void* src)
    -> cudnnStatus_t {
  const double scale = number(alpha), kept = number(beta);
  const CudnnDouble::State::Names names{handle, src_name, weights_name, windows, dst_name};
  const auto all = cudnn().problem_of(names);
  if (!all) return CUDNN_STATUS_BAD_PARAM;
  return cudnn().queue(
      names, {ConvolutionPass::kBackwardData, algorithm},
      {{src, all->src.extent()}, {weights, all->weight_count()}, {dst, all->dst.extent()}},
      {work, work_bytes}, [=](const CudnnProblem& problem) {
        convolve_back(problem, dst, weights, scale, kept, src);
      });
};

constexpr auto backward_weights = [](
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t src_name, const void* src,
    cudnnTensorDescriptor_t dst_name, const void* dst, cudnnConvolutionDescriptor_t windows,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* work, std::size_t work_bytes,
    const void* beta, cudnnFilterDescriptor_t weights_name, void* weights) -> cudnnStatus_t {
  const double scale = number(alpha), kept = number(beta);
  const CudnnDouble::State::Names names{handle, src_name, weights_name, windows, dst_name};
  const auto all = cudnn().problem_of(names);
  if (!all) return CUDNN_STATUS_BAD_PARAM;
  return cudnn().queue(
      names, {ConvolutionPass::kBackwardWeights, algorithm},
      {{src, all->src.extent()}, {weights, all->weight_count()}, {dst, all->dst.extent()}},
      {work, work_bytes}, [=](const CudnnProblem& problem) {
        convolve_for_weights(problem, src, dst, scale, kept, weights);
      });
};

void fill_descriptors(gpu::CudnnFunctions& table) {
  table.create_tensor = [](cudnnTensorDescriptor_t* made) {
    *made = cudnn().tensors.make();
    return CUDNN_STATUS_SUCCESS;
  };
  table.set_tensor = set_tensor;
  table.destroy_tensor = [](cudnnTensorDescriptor_t handle) {
    return cudnn_destroyed(cudnn().tensors, handle, "cudnnDestroyTensorDescriptor");
  };
  table.create_filter = [](cudnnFilterDescriptor_t* made) {
    *made = cudnn().filters.make();
    return CUDNN_STATUS_SUCCESS;
  };
  table.set_filter = set_filter;
  table.destroy_filter = [](cudnnFilterDescriptor_t handle) {
    return cudnn_destroyed(cudnn().filters, handle, "cudnnDestroyFilterDescriptor");
  };
  table.create_convolution = [](cudnnConvolutionDescriptor_t* made) {
    *made = cudnn().tasks.make();
    return CUDNN_STATUS_SUCCESS;
  };
  table.set_convolution = set_convolution;
  table.set_groups = [](cudnnConvolutionDescriptor_t handle, int groups) {
    CudnnTask* const task = cudnn().tasks.find(handle, "cudnnSetConvolutionGroupCount");
    if (task == nullptr || groups < 1) return CUDNN_STATUS_BAD_PARAM;
    task->windows.groups = groups;
    return CUDNN_STATUS_SUCCESS;
  };
  table.set_math = [](cudnnConvolutionDescriptor_t handle, cudnnMathType_t math) {
    CudnnTask* const task = cudnn().tasks.find(handle, "cudnnSetConvolutionMathType");
    if (task == nullptr) return CUDNN_STATUS_BAD_PARAM;
    task->math = math;
    return CUDNN_STATUS_SUCCESS;
  };
  table.destroy_convolution = [](cudnnConvolutionDescriptor_t handle) {
    return cudnn_destroyed(cudnn().tasks, handle, "cudnnDestroyConvolutionDescriptor");
  };
  table.create_activation = [](cudnnActivationDescriptor_t* made) {
    *made = cudnn().activations.make();
    return CUDNN_STATUS_SUCCESS;
  };
  table.set_activation = [](cudnnActivationDescriptor_t handle, cudnnActivationMode_t mode,
                            cudnnNanPropagation_t nan, double) {
    auto* const found = cudnn().activations.find(handle, "cudnnSetActivationDescriptor");
    if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
    *found = {mode, nan == CUDNN_PROPAGATE_NAN};
    return CUDNN_STATUS_SUCCESS;
  };
  table.destroy_activation = [](cudnnActivationDescriptor_t handle) {
    return cudnn_destroyed(cudnn().activations, handle, "cudnnDestroyActivationDescriptor");
  };
}

using Names = CudnnDouble::State::Names;

// What the library says of algorithms that were not tried.
constexpr float kUnmeasured = -1.0F;

void fill_forward(gpu::CudnnFunctions& table) {
  constexpr auto kPass = ConvolutionPass::kForward;
  table.rank_forward = [](cudnnHandle_t handle, cudnnTensorDescriptor_t src,
                          cudnnFilterDescriptor_t weights, cudnnConvolutionDescriptor_t windows,
                          cudnnTensorDescriptor_t dst, int wanted, int* count,
                          cudnnConvolutionFwdAlgoPerf_t* results) {
    ++cudnn().rankings;
    return cudnn().rank(Names{handle, src, weights, windows, dst}, kPass, wanted, count, results,
                        kUnmeasured);
  };
  table.try_forward = [](cudnnHandle_t handle, cudnnTensorDescriptor_t src,
                         cudnnFilterDescriptor_t weights, cudnnConvolutionDescriptor_t windows,
                         cudnnTensorDescriptor_t dst, int wanted, int* count,
                         cudnnConvolutionFwdAlgoPerf_t* results) {
    ++cudnn().trials;
    return cudnn().rank(Names{handle, src, weights, windows, dst}, kPass, wanted, count, results);
  };
  table.size_forward = [](cudnnHandle_t handle, cudnnTensorDescriptor_t src,
                          cudnnFilterDescriptor_t weights, cudnnConvolutionDescriptor_t windows,
                          cudnnTensorDescriptor_t dst, cudnnConvolutionFwdAlgo_t algorithm,
                          std::size_t* bytes) {
    return cudnn().size(Names{handle, src, weights, windows, dst}, kPass, algorithm, bytes);
  };
  table.forward = forward;
  table.forward_with_activation = forward_with_activation;
}

void fill_data(gpu::CudnnFunctions& table) {
  constexpr auto kPass = ConvolutionPass::kBackwardData;
  table.rank_data = [](cudnnHandle_t handle, cudnnFilterDescriptor_t weights,
                       cudnnTensorDescriptor_t dst, cudnnConvolutionDescriptor_t windows,
                       cudnnTensorDescriptor_t src, int wanted, int* count,
                       cudnnConvolutionBwdDataAlgoPerf_t* results) {
    ++cudnn().rankings;
    return cudnn().rank(Names{handle, src, weights, windows, dst}, kPass, wanted, count, results,
                        kUnmeasured);
  };
  table.try_data = [](cudnnHandle_t handle, cudnnFilterDescriptor_t weights,
                      cudnnTensorDescriptor_t dst, cudnnConvolutionDescriptor_t windows,
                      cudnnTensorDescriptor_t src, int wanted, int* count,
                      cudnnConvolutionBwdDataAlgoPerf_t* results) {
    ++cudnn().trials;
    return cudnn().rank(Names{handle, src, weights, windows, dst}, kPass, wanted, count, results);
  };
  table.size_data = [](cudnnHandle_t handle, cudnnFilterDescriptor_t weights,
                       cudnnTensorDescriptor_t dst, cudnnConvolutionDescriptor_t windows,
                       cudnnTensorDescriptor_t src, cudnnConvolutionBwdDataAlgo_t algorithm,
                       std::size_t* bytes) {
    return cudnn().size(Names{handle, src, weights, windows, dst}, kPass, algorithm, bytes);
  };
  table.backward_data = backward_data;
}

void fill_weights(gpu::CudnnFunctions& table) {
  constexpr auto kPass = ConvolutionPass::kBackwardWeights;
  table.rank_weights = [](cudnnHandle_t handle, cudnnTensorDescriptor_t src,
                          cudnnTensorDescriptor_t dst, cudnnConvolutionDescriptor_t windows,
                          cudnnFilterDescriptor_t weights, int wanted, int* count,
                          cudnnConvolutionBwdFilterAlgoPerf_t* results) {
    ++cudnn().rankings;
    return cudnn().rank(Names{handle, src, weights, windows, dst}, kPass, wanted, count, results,
                        kUnmeasured);
  };
  table.try_weights = [](cudnnHandle_t handle, cudnnTensorDescriptor_t src,
                         cudnnTensorDescriptor_t dst, cudnnConvolutionDescriptor_t windows,
                         cudnnFilterDescriptor_t weights, int wanted, int* count,
                         cudnnConvolutionBwdFilterAlgoPerf_t* results) {
    ++cudnn().trials;
    return cudnn().rank(Names{handle, src, weights, windows, dst}, kPass, wanted, count, results);
  };
  table.size_weights = [](cudnnHandle_t handle, cudnnTensorDescriptor_t src,
                          cudnnTensorDescriptor_t dst, cudnnConvolutionDescriptor_t windows,
                          cudnnFilterDescriptor_t weights,
                          cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
    return cudnn().size(Names{handle, src, weights, windows, dst}, kPass, algorithm, bytes);
  };
  table.backward_weights = backward_weights;
}

}  // namespace

CudnnDouble::CudnnDouble(RecordingDriver& driver) : state_(std::make_unique<State>(driver)) {
  SPEEDO_ASSERT(active_cudnn == nullptr);
  active_cudnn = state_.get();
}

CudnnDouble::~CudnnDouble() { active_cudnn = nullptr; }

std::int64_t CudnnDouble::rankings() const { return state_->rankings; }
std::int64_t CudnnDouble::trials() const { return state_->trials; }
std::int64_t CudnnDouble::passes() const { return state_->passes; }
std::int64_t CudnnDouble::fused() const { return state_->fused; }
std::size_t CudnnDouble::work_bytes_max() const { return state_->work_bytes_max; }
void CudnnDouble::slow_groups_down() { state_->grouped_slowness = 100.0F; }
void CudnnDouble::load_when_tried() { state_->loads_when_tried = true; }
void CudnnDouble::lack_algorithms() { state_->has_algorithms = false; }

gpu::CudnnFunctions CudnnDouble::functions() {
  gpu::CudnnFunctions table;
  table.get_version = [] { return std::size_t{CUDNN_VERSION}; };
  table.get_error_string = [](cudnnStatus_t status) {
    return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED
               ? "CUDNN_STATUS_NOT_SUPPORTED"
               : "CUDNN_STATUS_BAD_PARAM";
  };
  table.create = [](cudnnHandle_t* made) {
    *made = cudnn().handles.make();
    return CUDNN_STATUS_SUCCESS;
  };
  table.destroy = [](cudnnHandle_t handle) {
    return cudnn_destroyed(cudnn().handles, handle, "cudnnDestroy");
  };
  table.set_stream = [](cudnnHandle_t handle, cudaStream_t stream) {
    auto* const found = cudnn().handles.find(handle, "cudnnSetStream");
    if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
    *found = stream;
    return CUDNN_STATUS_SUCCESS;
  };
  fill_descriptors(table);
  fill_forward(table);
  fill_data(table);
  fill_weights(table);
  return table;
}

}  // namespace speedo::test
