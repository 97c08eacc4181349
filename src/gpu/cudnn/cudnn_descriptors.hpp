#pragma once

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "gpu/cudnn/cudnn_functions.hpp"

namespace speedo::gpu {

// What `status` says as a Result. `function`: who said it.
Result<void> cudnn_said(const CudnnFunctions& functions, const char* function,
                        cudnnStatus_t status);

// How cuDNN is told of a convolution. It knows at least two axes: others before them are of size 1.
class CudnnDescriptors {
 public:
  // `functions` outlive it.
  explicit CudnnDescriptors(const CudnnFunctions& functions) : dnn_(functions) {}
  ~CudnnDescriptors();
  CudnnDescriptors(const CudnnDescriptors&) = delete;
  CudnnDescriptors& operator=(const CudnnDescriptors&) = delete;

  // `weights_last`: the weights of each output have their channels last. Requires: not transposed;
  // called once. Errors: kUnsupported if a size or a layout is not among those that it knows;
  // kInternal, what the library says.
  Result<void> describe(const ConvolutionShape& shape, bool weights_last);
  Result<void> set_math(cudnnMathType_t math);

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
  bool weights_last_ = false;
};

}  // namespace speedo::gpu
