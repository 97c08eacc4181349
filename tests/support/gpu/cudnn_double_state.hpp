#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/gpu/cudnn_double.hpp"
#include "support/gpu/cudnn_loops.hpp"
#include "support/gpu/handle_set.hpp"

namespace speedo::test {

struct CudnnFilter {
  std::vector<int> dims;
  bool is_last = false;
  ElementType type = ElementType::kFloat32;
};

struct CudnnTask {
  CudnnWindows windows;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

struct CudnnActivation {
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
  bool keeps_nan = false;
};

// What one of the algorithms of a pass takes and gives; nothing: the shape does not have it.
struct CudnnMethod {
  std::size_t bytes = 0;
  bool is_sure = true;  // gives the same bits each time
};

inline bool all_are(const std::vector<int>& values, int wanted) {
  return std::all_of(values.begin(), values.end(), [=](int value) { return value == wanted; });
}

// Like those of the library in kind: some of one problem alone, some that take much memory, some
// that are not sure.
inline std::optional<CudnnMethod> method_of(const CudnnProblem& all, gpu::ConvolutionPass pass,
                                            int algorithm) {
  const bool is_dense = all_are(all.windows.stride, 1) && all_are(all.windows.dilation, 1) &&
                        all.windows.groups == 1;
  const std::vector<int> kernel(all.weights.begin() + 2, all.weights.end());
  const auto bytes = static_cast<std::size_t>(4 * all.dst.extent());
  if (pass == gpu::ConvolutionPass::kForward) {
    switch (algorithm) {
      case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM: return CudnnMethod{};
      case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM: return CudnnMethod{bytes / 2 + 16};
      case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
        return is_dense ? std::optional(CudnnMethod{16 * bytes}) : std::nullopt;
      case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD:
        return is_dense && all_are(kernel, 3) ? std::optional(CudnnMethod{64}) : std::nullopt;
      default: return std::nullopt;
    }
  }
  if (algorithm == 0) return CudnnMethod{0, false};
  if (algorithm == 1) return CudnnMethod{bytes + 32};
  const bool is_data = pass == gpu::ConvolutionPass::kBackwardData;
  if (algorithm == 3 && is_dense) return CudnnMethod{8 * bytes, is_data};
  return std::nullopt;
}

// What a CudnnDouble knows: its handles, and what they say together.
class CudnnDouble::State {
 public:
  explicit State(RecordingDriver& the_driver) : driver(the_driver) {}

  void report(const std::string& text) { driver.log().report("cudnn: " + text); }

  struct Names {
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t src;
    cudnnFilterDescriptor_t weights;
    cudnnConvolutionDescriptor_t windows;
    cudnnTensorDescriptor_t dst;
  };

  // Nothing, with reports, if the descriptors do not say a convolution.
  std::optional<CudnnProblem> problem_of(const Names& names) {
    const auto* const handle = handles.find(names.handle, "convolution");
    const CudnnTensor* const src = tensors.find(names.src, "convolution");
    const CudnnTensor* const dst = tensors.find(names.dst, "convolution");
    const CudnnFilter* const weights = filters.find(names.weights, "convolution");
    const CudnnTask* const task = tasks.find(names.windows, "convolution");
    if (handle == nullptr || src == nullptr || dst == nullptr || weights == nullptr ||
        task == nullptr) {
      return std::nullopt;
    }
    CudnnProblem all{*src, *dst, weights->dims, weights->is_last, task->windows, weights->type};
    if (src->type != all.type || dst->type != all.type) {
      report("arrays and weights of several types");
      return std::nullopt;
    }
    if (all.type == ElementType::kBfloat16 && task->math != CUDNN_TENSOR_OP_MATH) {
      report("arrays of bfloat16, and not the units that multiply them");
      return std::nullopt;
    }
    if (task->math != CUDNN_FMA_MATH) all.windows.rounding = {.digits = 10};
    if (task->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) {
      all.windows.rounding = {.is_half = true};
    }
    if (!fits(all)) return std::nullopt;
    return all;
  }

  bool fits(const CudnnProblem& all) {
    const std::size_t axes = all.windows.pad.size();
    const bool is_set = axes + 2 == all.src.dims.size() && axes + 2 == all.dst.dims.size() &&
                        axes + 2 == all.weights.size();
    const int groups = all.windows.groups;
    if (!is_set || all.src.dims[1] != groups * all.weights[1] ||
        all.dst.dims[1] != all.weights[0] || all.weights[0] % groups != 0 ||
        all.src.dims[0] != all.dst.dims[0]) {
      report("descriptors of other axes, channels, groups or samples");
      return false;
    }
    if (all.weights_last && (all.src.strides[1] != 1 || all.dst.strides[1] != 1)) {
      report("weights have their channels last, and not all arrays have");
      return false;
    }
    for (std::size_t i = 0; i < axes; ++i) {
      const int extent = all.windows.dilation[i] * (all.weights[i + 2] - 1) + 1;
      const int room = all.src.dims[i + 2] + 2 * all.windows.pad[i] - extent;
      if (room >= 0 && all.dst.dims[i + 2] == room / all.windows.stride[i] + 1) continue;
      report(fmt::format("axis {}: no {} windows in {} elements", i, all.dst.dims[i + 2],
                         all.src.dims[i + 2]));
      return false;
    }
    return true;
  }

  template <class Performance>
  cudnnStatus_t rank(const Names& names, gpu::ConvolutionPass pass, int wanted, int* count,
                     Performance* results, float milliseconds = 1.0F) {
    const auto all = problem_of(names);
    *count = 0;
    if (!all) return CUDNN_STATUS_BAD_PARAM;
    if (!has_algorithms) return CUDNN_STATUS_NOT_SUPPORTED;
    const CudnnTask* const task = tasks.find(names.windows, "rank");
    for (int i = wanted - 1; i >= 0; --i) {
      const auto method = method_of(*all, pass, i);
      Performance result = {};
      result.algo = static_cast<decltype(result.algo)>(i);
      result.status = method ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
      result.memory = method ? method->bytes : 0;
      result.determinism =
          method && method->is_sure ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
      result.mathType =
          task->math == CUDNN_DEFAULT_MATH ? CUDNN_TENSOR_OP_MATH : task->math;
      result.time = all->windows.groups > 1 ? milliseconds * grouped_slowness : milliseconds;
      if (loads_when_tried && result.time > 0.0F) result.time += loading_time(pass, i);
      results[(*count)++] = result;
    }
    std::stable_sort(results, results + *count, [](const Performance& a, const Performance& b) {
      return a.time < b.time;
    });
    return CUDNN_STATUS_SUCCESS;
  }

  // Of algorithm 0 the time of the algorithm itself, which is more than the others take.
  float loading_time(gpu::ConvolutionPass pass, int algorithm) {
    constexpr float kSlow = 1.0F, kLoading = 100.0F;
    if (algorithm == 0) return kSlow;
    return loaded.insert({pass, algorithm}).second ? kLoading : 0.0F;
  }

  cudnnStatus_t size(const Names& names, gpu::ConvolutionPass pass, int algorithm,
                     std::size_t* bytes) {
    const auto all = problem_of(names);
    if (!all) return CUDNN_STATUS_BAD_PARAM;
    const auto method = method_of(*all, pass, algorithm);
    if (!method) return CUDNN_STATUS_NOT_SUPPORTED;
    *bytes = method->bytes;
    return CUDNN_STATUS_SUCCESS;
  }

  // The arrays of a pass, with how many elements each has.
  struct Array {
    const void* first;
    std::int64_t count;
  };

  // Queues what `work` does for a convolution that the descriptors say, if nothing is wrong.
  cudnnStatus_t queue(const Names& names, std::pair<gpu::ConvolutionPass, int> how,
                      std::vector<Array> arrays, gpu::WorkMemory memory,
                      const std::function<void(const CudnnProblem&)>& work) {
    const auto all = problem_of(names);
    if (!all) return CUDNN_STATUS_BAD_PARAM;
    const auto method = method_of(*all, how.first, how.second);
    if (!method) {
      report(fmt::format("this shape has no algorithm {}", how.second));
      return CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (memory.bytes < method->bytes || (method->bytes > 0 && memory.data == nullptr)) {
      report(fmt::format("{} bytes of working memory, {} needed", memory.bytes, method->bytes));
      return CUDNN_STATUS_BAD_PARAM;
    }
    const std::int64_t element = bytes_of_element(all->type);
    arrays.push_back({memory.data, static_cast<std::int64_t>(method->bytes) / element});
    std::vector<const void*> places;
    for (const Array& array : arrays) {
      if (array.count == 0) continue;
      places.push_back(array.first);
      places.push_back(static_cast<const std::byte*>(array.first) + element * array.count - 1);
    }
    ++passes;
    work_bytes_max = std::max(work_bytes_max, memory.bytes);
    driver.queue_call(*handles.find(names.handle, "queue"), "cudnn", places,
                      [problem = *all, bytes = method->bytes, memory, work] {
                        if (bytes > 0) spoil(memory.data, bytes);
                        work(problem);
                      });
    return CUDNN_STATUS_SUCCESS;
  }

  RecordingDriver& driver;
  HandleSet<cudnnHandle_t, gpu::StreamHandle> handles{driver.log(), "cudnn handle"};
  HandleSet<cudnnTensorDescriptor_t, CudnnTensor> tensors{driver.log(), "tensor descriptor"};
  HandleSet<cudnnFilterDescriptor_t, CudnnFilter> filters{driver.log(), "filter descriptor"};
  HandleSet<cudnnConvolutionDescriptor_t, CudnnTask> tasks{driver.log(), "windows descriptor"};
  HandleSet<cudnnActivationDescriptor_t, CudnnActivation> activations{driver.log(),
                                                                      "activation descriptor"};
  std::int64_t rankings = 0, trials = 0, passes = 0, fused = 0;
  std::size_t work_bytes_max = 0;
  float grouped_slowness = 1.0F;
  bool has_algorithms = true, loads_when_tried = false;
  std::set<std::pair<gpu::ConvolutionPass, int>> loaded;
};

}  // namespace speedo::test
