// Convolutions by cuDNN's functions of one operation each ("legacy"): an algorithm is a number and
// its working memory a size, which can be checked without a device, and they take any layout of
// strides. Its graphs would add engines compiled at run time, and fusions with what is around.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gpu/cudnn/cudnn_calls.hpp"
#include "gpu/library/shared_library.hpp"

namespace speedo::gpu {
namespace {

// How a pass is computed.
struct DnnChoice {
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  std::size_t workspace_bytes = 0;
  DnnOrder order;
  float milliseconds = 0.0F;  // of the whole, as measured; not above 0: it was not
};

// A shape and a pass, as numbers.
using DnnKey = std::vector<std::int64_t>;

// What convolutions have in common that differ in the sizes of their arrays alone.
DnnKey kind_of(const ConvolutionShape& shape, ConvolutionPass pass) {
  DnnKey key{static_cast<std::int64_t>(pass), shape.channels, shape.outputs, shape.groups,
             shape.src_layout.block, shape.dst_layout.block,
             static_cast<std::int64_t>(shape.src_layout.type),
             static_cast<std::int64_t>(shape.dst_layout.type)};
  for (const auto* sizes : {&shape.kernel, &shape.stride, &shape.pad, &shape.dilation}) {
    key.insert(key.end(), sizes->begin(), sizes->end());
  }
  return key;
}

DnnKey key_of(const ConvolutionShape& shape, DnnKey kind) {
  kind.push_back(shape.batch);
  for (const auto* sizes : {&shape.src_size, &shape.dst_size}) {
    kind.insert(kind.end(), sizes->begin(), sizes->end());
  }
  return kind;
}

// What was chosen by trying, for how many sizes of a kind, and last.
struct DnnTrials {
  int sizes = 0;
  DnnChoice last;
};

const char* name_of(cudnnConvolutionFwdAlgo_t algorithm) {
  switch (algorithm) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM: return "implicit gemm";
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM: return "implicit precomputed gemm";
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM: return "gemm";
    case CUDNN_CONVOLUTION_FWD_ALGO_DIRECT: return "direct";
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT: return "fft";
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING: return "fft in tiles";
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD: return "winograd";
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED: return "winograd in steps";
    case CUDNN_CONVOLUTION_FWD_ALGO_COUNT: break;
  }
  return "unknown";
}

const char* name_of(cudnnConvolutionBwdDataAlgo_t algorithm) {
  switch (algorithm) {
    case CUDNN_CONVOLUTION_BWD_DATA_ALGO_0: return "data 0";
    case CUDNN_CONVOLUTION_BWD_DATA_ALGO_1: return "data 1";
    case CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT: return "fft";
    case CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING: return "fft in tiles";
    case CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD: return "winograd";
    case CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED: return "winograd in steps";
    case CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT: break;
  }
  return "unknown";
}

const char* name_of(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  switch (algorithm) {
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0: return "weights 0";
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1: return "weights 1";
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT: return "fft";
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3: return "weights 3";
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD: return "winograd";
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED: return "winograd in steps";
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING: return "fft in tiles";
    case CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT: break;
  }
  return "unknown";
}

// What the passes of one device share.
struct CudnnContext {
  CudnnFunctions dnn;
  cudnnHandle_t handle = nullptr;
  DnnOptions options;
};

// Where in the arrays each of a convolution's groups begins.
struct DnnGroups {
  std::int64_t count = 1, src_step = 0, weights_step = 0, dst_step = 0, outputs = 0;
  ElementType type = ElementType::kFloat32;

  DnnArrays of(const DnnArrays& all, std::int64_t group) const {
    return {element_at(all.src, group * src_step, type),
            element_at(all.weights, group * weights_step, type),
            element_at(all.dst, group * dst_step, type)};
  }
};

DnnGroups groups_of(const ConvolutionShape& shape, const DnnOrder& order) {
  if (!order.by_group) return {};
  const std::int64_t channels = shape.channels / shape.groups;
  const std::int64_t outputs = shape.outputs / shape.groups;
  const auto step = [](Layout layout, std::int64_t width, const auto& size) {
    return layout.is_plain() ? width * count_of(size) : width;
  };
  return {shape.groups, step(shape.src_layout, channels, shape.src_size),
          weight_count(shape) / shape.groups, step(shape.dst_layout, outputs, shape.dst_size),
          outputs, shape.dst_layout.type};
}

template <class Calls>
class CudnnPass final : public DnnPass {
 public:
  CudnnPass(const CudnnContext& context, std::unique_ptr<CudnnDescriptors> of,
            const DnnChoice& choice, const ConvolutionShape& shape)
      : context_(context),
        of_(std::move(of)),
        algorithm_(static_cast<typename Calls::Algorithm>(choice.algorithm)),
        workspace_bytes_(choice.workspace_bytes),
        weight_layout_{choice.order.weights_last ? shape.channels / shape.groups : 1,
                       shape.dst_layout.type},
        groups_(groups_of(shape, choice.order)) {}

  std::string name() const override {
    const char* const each = groups_.count > 1 ? " of each group" : "";
    return fmt::format("cudnn {}{}", name_of(algorithm_), each);
  }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  Layout weight_layout() const override { return weight_layout_; }

  Result<void> run(const DnnArrays& arrays, WorkMemory memory) override {
    for (std::int64_t group = 0; group < groups_.count; ++group) {
      const cudnnStatus_t status =
          Calls::run(call(), algorithm_, groups_.of(arrays, group), memory);
      if (status != CUDNN_STATUS_SUCCESS) return cudnn_said(context_.dnn, name().c_str(), status);
    }
    return {};
  }

  Result<bool> run_with_relu(const DnnArrays& arrays, const float* bias,
                             WorkMemory memory) override {
    if constexpr (Calls::kPass != ConvolutionPass::kForward) {
      return false;
    } else {
      // The bias is float32.
      if (of_->type() != ElementType::kFloat32) return false;
      for (std::int64_t group = 0; group < groups_.count; ++group) {
        const cudnnStatus_t status = run_group_with_relu(
            groups_.of(arrays, group), bias + group * groups_.outputs, memory);
        // What is wrong with the arrays themselves, the plain call that follows says as well.
        const int category = CUDNN_STATUS_CATEGORY(status);
        const bool cannot =
            category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
        if (cannot) return false;
        SPEEDO_TRY(cudnn_said(context_.dnn, "cudnnConvolutionBiasActivationForward", status));
      }
      return true;
    }
  }

 private:
  cudnnStatus_t run_group_with_relu(const DnnArrays& arrays, const float* bias,
                                    WorkMemory memory) const {
    float* const dst = const_cast<float*>(arrays.dst);
    return context_.dnn.forward_with_activation(
        context_.handle, &kCudnnOne, of_->src, arrays.src, of_->weights, arrays.weights,
        of_->convolution, algorithm_, memory.data, memory.bytes, &kCudnnZero, of_->dst, dst,
        of_->bias, bias, of_->relu, of_->dst, dst);
  }
  CudnnCall call() const { return {context_.dnn, context_.handle, *of_}; }

  const CudnnContext& context_;
  std::unique_ptr<CudnnDescriptors> of_;
  typename Calls::Algorithm algorithm_;
  std::size_t workspace_bytes_;
  Layout weight_layout_;
  DnnGroups groups_;
};

class Cudnn final : public Dnn {
 public:
  explicit Cudnn(CudnnContext context) : context_(std::move(context)) {}
  ~Cudnn() override { context_.dnn.destroy(context_.handle); }
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  Result<std::unique_ptr<DnnPass>> plan(const ConvolutionShape& shape,
                                        ConvolutionPass pass) override {
    switch (pass) {
      case ConvolutionPass::kForward: return plan_pass<CudnnForward>(shape);
      case ConvolutionPass::kBackwardData: return plan_pass<CudnnBackwardData>(shape);
      case ConvolutionPass::kBackwardWeights: break;
    }
    return plan_pass<CudnnBackwardWeights>(shape);
  }

  std::int64_t searches() const override { return static_cast<std::int64_t>(choices_.size()); }

 private:
  template <class Calls>
  Result<std::unique_ptr<DnnPass>> plan_pass(const ConvolutionShape& shape) {
    const DnnKey kind = kind_of(shape, Calls::kPass);
    const DnnKey key = key_of(shape, kind);
    auto found = choices_.find(key);
    if (found == choices_.end()) {
      SPEEDO_ASSIGN(const DnnChoice choice, choose_next<Calls>(shape, trials_[kind]));
      found = choices_.emplace(key, choice).first;
    }
    const DnnChoice& choice = found->second;
    auto of = std::make_unique<CudnnDescriptors>(context_.dnn);
    SPEEDO_TRY(of->describe(shape, choice.order));
    SPEEDO_TRY(of->set_math(choice.math));
    return std::unique_ptr<DnnPass>(
        std::make_unique<CudnnPass<Calls>>(context_, std::move(of), choice, shape));
  }

  // Trying takes seconds for a net: where images of ever new sizes come, it ends, and shapes are
  // computed as the last one of their kind that was tried, or as heuristics say.
  template <class Calls>
  Result<DnnChoice> choose_next(const ConvolutionShape& shape, DnnTrials& trials) {
    constexpr int kTriedSizesMax = 8;
    const bool may_try = context_.options.measures && !context_.options.is_deterministic;
    if (!may_try) return choose<Calls>(shape, false);
    if (trials.sizes == kTriedSizesMax) {
      DnnChoice same = trials.last;
      return can_go<Calls>(shape, same) ? same : choose<Calls>(shape, false);
    }
    SPEEDO_ASSIGN(trials.last, choose<Calls>(shape, true));
    ++trials.sizes;
    return trials.last;
  }

  template <class Calls>
  bool can_go(const ConvolutionShape& shape, DnnChoice& choice) {
    if (choice.order.by_group && !may_go_by_group(shape)) return false;
    CudnnDescriptors of(context_.dnn);
    return of.describe(shape, choice.order) && of.set_math(choice.math) &&
           fits<Calls>({context_.dnn, context_.handle, of}, choice);
  }

  // Whether the library has the algorithm for it, within the working memory, which is noted.
  template <class Calls>
  bool fits(const CudnnCall& call, DnnChoice& choice) const {
    const auto algorithm = static_cast<typename Calls::Algorithm>(choice.algorithm);
    return Calls::size(call, algorithm, &choice.workspace_bytes) == CUDNN_STATUS_SUCCESS &&
           choice.workspace_bytes <= context_.options.workspace_bytes_max;
  }

  // With channels last in all three arrays, if two of them have it and there is such an algorithm.
  template <class Calls>
  Result<DnnChoice> choose(const ConvolutionShape& shape, bool tries) {
    if (is_channels_last(shape)) {
      auto choice = choose_groups<Calls>(shape, {.weights_last = true}, tries);
      if (choice || choice.error().code != ErrorCode::kUnsupported) return choice;
    }
    return choose_groups<Calls>(shape, {}, tries);
  }

  // All groups at once, or one after the other where that was measured to be faster.
  template <class Calls>
  Result<DnnChoice> choose_groups(const ConvolutionShape& shape, DnnOrder order, bool tries) {
    auto whole = search<Calls>(shape, order, tries);
    if (!whole || whole->milliseconds <= 0.0F || !may_go_by_group(shape)) return whole;
    order.by_group = true;
    auto parts = search<Calls>(shape, order, tries);
    const bool is_faster =
        parts && parts->milliseconds > 0.0F && parts->milliseconds < whole->milliseconds;
    return is_faster ? parts : whole;
  }

  // Algorithms of one problem alone (FFT, Winograd) pay where groups are few and wide.
  static bool may_go_by_group(const ConvolutionShape& shape) {
    constexpr std::int64_t kWidthMin = 16;
    if (shape.groups == 1 || !have_one_order(shape)) return false;
    // Algorithms are tried on arrays that can be loaded by so many bytes.
    constexpr std::int64_t kBytesAtATime = 16;
    const DnnGroups groups = groups_of(shape, {.by_group = true});
    const std::int64_t steps = groups.src_step | groups.weights_step | groups.dst_step;
    return steps * bytes_of_element(groups.type) % kBytesAtATime == 0 &&
           std::min(shape.channels, shape.outputs) >= kWidthMin * shape.groups;
  }

  static bool is_channels_last(const ConvolutionShape& shape) {
    const bool are_plain = shape.src_layout.is_plain() && shape.dst_layout.is_plain();
    return !are_plain && have_one_order(shape);
  }

  // In float32 proper no kernel may round its operands. Rounding to float16 has to be allowed, and
  // the units that multiply arrays of bfloat16 have to be asked for.
  bool is_exact() const { return context_.options.arithmetic == Arithmetic::kFloat32; }
  cudnnMathType_t wanted_math(ElementType type) const {
    if (is_exact()) return CUDNN_FMA_MATH;
    if (type == ElementType::kBfloat16) return CUDNN_TENSOR_OP_MATH;
    const bool is_half = context_.options.arithmetic == Arithmetic::kFloat16;
    return is_half ? CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION : CUDNN_DEFAULT_MATH;
  }

  template <class Calls>
  Result<DnnChoice> search(const ConvolutionShape& shape, const DnnOrder& order, bool tries) {
    CudnnDescriptors of(context_.dnn);
    SPEEDO_TRY(of.describe(shape, order));
    const CudnnCall call{context_.dnn, context_.handle, of};
    SPEEDO_TRY(of.set_math(wanted_math(of.type())));
    for (const auto& result : ranked<Calls>(call, tries)) {
      const bool is_sure = result.determinism == CUDNN_DETERMINISTIC;
      if (result.status != CUDNN_STATUS_SUCCESS) continue;
      if (context_.options.is_deterministic && !is_sure) continue;
      DnnChoice choice{static_cast<int>(result.algo),
                       is_exact() ? CUDNN_FMA_MATH : result.mathType, 0, order,
                       result.time * static_cast<float>(order.by_group ? shape.groups : 1)};
      SPEEDO_TRY(of.set_math(choice.math));
      if (fits<Calls>(call, choice)) return choice;
    }
    return Error{ErrorCode::kUnsupported,
                 fmt::format("cuDNN has no algorithm for this convolution within {} MiB",
                             context_.options.workspace_bytes_max >> 20U)};
  }

  // Algorithms, the best first: as measured, then as heuristics have them, as trials need memory.
  template <class Calls>
  std::vector<typename Calls::Performance> ranked(const CudnnCall& call, bool tries) const {
    std::vector<typename Calls::Performance> all;
    const auto add = [&](const auto& order) {
      std::vector<typename Calls::Performance> results(Calls::kAlgorithms);
      int count = 0;
      if (order(call, &count, results.data()) != CUDNN_STATUS_SUCCESS) return;
      all.insert(all.end(), results.begin(), results.begin() + std::min(count, Calls::kAlgorithms));
    };
    if (tries) {
      // The first time it is measured, too, how long kernels take to load.
      add(Calls::attempt);
      all.clear();
      add(Calls::attempt);
    }
    add(Calls::rank);
    return all;
  }

  CudnnContext context_;
  std::map<DnnKey, DnnChoice> choices_;
  std::map<DnnKey, DnnTrials> trials_;
};

}  // namespace

Result<std::unique_ptr<Dnn>> make_cudnn(const CudnnFunctions& functions, StreamHandle stream,
                                        const DnnOptions& options) {
  // Major * 10000 + minor * 100 + patch.
  const int version = static_cast<int>(functions.get_version());
  SPEEDO_TRY(check_version("cuDNN", {version / 10000, version / 100 % 100, version % 100},
                           {CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL}));
  CudnnContext context{functions, nullptr, options};
  SPEEDO_TRY(cudnn_said(functions, "cudnnCreate", functions.create(&context.handle)));
  const cudnnHandle_t handle = context.handle;
  std::unique_ptr<Dnn> made = std::make_unique<Cudnn>(std::move(context));
  SPEEDO_TRY(cudnn_said(functions, "cudnnSetStream", functions.set_stream(handle, stream)));
  return made;
}

}  // namespace speedo::gpu
