#pragma once

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "gpu/cudnn/cudnn_functions.hpp"

namespace speedo::gpu {

// What `status` says as a Result. `function`: who said it.
Result<void> cudnn_said(const CudnnFunctions& functions, const char* function,
                        cudnnStatus_t status);

// The order in which a convolution's weights and groups are given to it.
struct DnnOrder {
  bool weights_last = false;  // the weights of each output have their channels last
  bool by_group = false;      // one group after the other: channels of the same arrays
};

// Whether both arrays are plain, or have their channels last, and their elements are of one type.
bool have_one_order(const ConvolutionShape& shape);

// How cuDNN is told of a convolution, or of each of its groups. It knows at least two axes: others
// before them are of size 1.
class CudnnDescriptors {
 public:
  // `functions` outlive it.
  explicit CudnnDescriptors(const CudnnFunctions& functions) : dnn_(functions) {}
  ~CudnnDescriptors();
  CudnnDescriptors(const CudnnDescriptors&) = delete;
  CudnnDescriptors& operator=(const CudnnDescriptors&) = delete;

  // Requires: not transposed; called once. Errors: kUnsupported if a size or a layout is not among
  // those that it knows; kInternal, what the library says.
  Result<void> describe(const ConvolutionShape& shape, const DnnOrder& order);
  Result<void> set_math(cudnnMathType_t math);
  // Of the arrays and the weights.
  ElementType type() const { return type_; }

  cudnnTensorDescriptor_t src = nullptr, dst = nullptr, bias = nullptr;
  cudnnFilterDescriptor_t weights = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  cudnnActivationDescriptor_t relu = nullptr;

 private:
  Result<void> describe_tensor(cudnnTensorDescriptor_t& tensor, const ArrayShape& array,
                               const std::vector<std::int64_t>& sizes, Layout layout);
  Result<void> describe_weights(const ConvolutionShape& shape);
  Result<void> describe_windows(const ConvolutionShape& shape);

  const CudnnFunctions& dnn_;
  DnnOrder order_;
  ElementType type_ = ElementType::kFloat32;
  std::int64_t parts_ = 1;  // that are given one after the other
};

}  // namespace speedo::gpu
