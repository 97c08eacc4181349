#pragma once

#include <cudnn.h>

#include <memory>

#include <speedo/base/result.hpp>

#include "gpu/cudnn/dnn.hpp"

namespace speedo::gpu {

// The functions of cuDNN that are used, wherever they come from: the library, or a test's double of
// it.
struct CudnnFunctions {
  decltype(&::cudnnGetVersion) get_version = nullptr;
  decltype(&::cudnnGetErrorString) get_error_string = nullptr;
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnDestroy) destroy = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnCreateTensorDescriptor) create_tensor = nullptr;
  decltype(&::cudnnSetTensorNdDescriptor) set_tensor = nullptr;
  decltype(&::cudnnDestroyTensorDescriptor) destroy_tensor = nullptr;
  decltype(&::cudnnCreateFilterDescriptor) create_filter = nullptr;
  decltype(&::cudnnSetFilterNdDescriptor) set_filter = nullptr;
  decltype(&::cudnnDestroyFilterDescriptor) destroy_filter = nullptr;
  decltype(&::cudnnCreateConvolutionDescriptor) create_convolution = nullptr;
  decltype(&::cudnnSetConvolutionNdDescriptor) set_convolution = nullptr;
  decltype(&::cudnnSetConvolutionGroupCount) set_groups = nullptr;
  decltype(&::cudnnSetConvolutionMathType) set_math = nullptr;
  decltype(&::cudnnDestroyConvolutionDescriptor) destroy_convolution = nullptr;
  decltype(&::cudnnCreateActivationDescriptor) create_activation = nullptr;
  decltype(&::cudnnSetActivationDescriptor) set_activation = nullptr;
  decltype(&::cudnnDestroyActivationDescriptor) destroy_activation = nullptr;

  decltype(&::cudnnGetConvolutionForwardAlgorithm_v7) rank_forward = nullptr;
  decltype(&::cudnnFindConvolutionForwardAlgorithm) try_forward = nullptr;
  decltype(&::cudnnGetConvolutionForwardWorkspaceSize) size_forward = nullptr;
  decltype(&::cudnnConvolutionForward) forward = nullptr;
  decltype(&::cudnnConvolutionBiasActivationForward) forward_with_activation = nullptr;

  decltype(&::cudnnGetConvolutionBackwardDataAlgorithm_v7) rank_data = nullptr;
  decltype(&::cudnnFindConvolutionBackwardDataAlgorithm) try_data = nullptr;
  decltype(&::cudnnGetConvolutionBackwardDataWorkspaceSize) size_data = nullptr;
  decltype(&::cudnnConvolutionBackwardData) backward_data = nullptr;

  decltype(&::cudnnGetConvolutionBackwardFilterAlgorithm_v7) rank_weights = nullptr;
  decltype(&::cudnnFindConvolutionBackwardFilterAlgorithm) try_weights = nullptr;
  decltype(&::cudnnGetConvolutionBackwardFilterWorkspaceSize) size_weights = nullptr;
  decltype(&::cudnnConvolutionBackwardFilter) backward_weights = nullptr;
};

// The library's, loaded once. Errors: kUnsupported if it is absent, kMismatch if it is another
// version.
Result<CudnnFunctions> load_cudnn();

// Convolutions by cuDNN on the current device, queued on the stream. Errors: kMismatch; kInternal,
// what the library says.
Result<std::unique_ptr<Dnn>> make_cudnn(const CudnnFunctions& functions, StreamHandle stream,
                                        const DnnOptions& options);

}  // namespace speedo::gpu
