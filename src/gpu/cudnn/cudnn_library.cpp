#include <fmt/format.h>

#include "gpu/cudnn/cudnn_functions.hpp"
#include "gpu/library/shared_library.hpp"

namespace speedo::gpu {
namespace {

Result<CudnnFunctions> find_cudnn() {
  SPEEDO_ASSIGN(const SharedLibrary library,
                SharedLibrary::load(fmt::format("libcudnn.so.{}", CUDNN_MAJOR),
                                    fmt::format("install cuDNN {}, or name its folder in "
                                                "LD_LIBRARY_PATH",
                                                CUDNN_MAJOR)));
  CudnnFunctions found;
  SPEEDO_TRY(library.find("cudnnGetVersion", found.get_version));
  SPEEDO_TRY(library.find("cudnnGetErrorString", found.get_error_string));
  SPEEDO_TRY(library.find("cudnnCreate", found.create));
  SPEEDO_TRY(library.find("cudnnDestroy", found.destroy));
  SPEEDO_TRY(library.find("cudnnSetStream", found.set_stream));
  SPEEDO_TRY(library.find("cudnnCreateTensorDescriptor", found.create_tensor));
  SPEEDO_TRY(library.find("cudnnSetTensorNdDescriptor", found.set_tensor));
  SPEEDO_TRY(library.find("cudnnDestroyTensorDescriptor", found.destroy_tensor));
  SPEEDO_TRY(library.find("cudnnCreateFilterDescriptor", found.create_filter));
  SPEEDO_TRY(library.find("cudnnSetFilterNdDescriptor", found.set_filter));
  SPEEDO_TRY(library.find("cudnnDestroyFilterDescriptor", found.destroy_filter));
  SPEEDO_TRY(library.find("cudnnCreateConvolutionDescriptor", found.create_convolution));
  SPEEDO_TRY(library.find("cudnnSetConvolutionNdDescriptor", found.set_convolution));
  SPEEDO_TRY(library.find("cudnnSetConvolutionGroupCount", found.set_groups));
  SPEEDO_TRY(library.find("cudnnSetConvolutionMathType", found.set_math));
  SPEEDO_TRY(library.find("cudnnDestroyConvolutionDescriptor", found.destroy_convolution));
  SPEEDO_TRY(library.find("cudnnCreateActivationDescriptor", found.create_activation));
  SPEEDO_TRY(library.find("cudnnSetActivationDescriptor", found.set_activation));
  SPEEDO_TRY(library.find("cudnnDestroyActivationDescriptor", found.destroy_activation));
  SPEEDO_TRY(library.find("cudnnGetConvolutionForwardAlgorithm_v7", found.rank_forward));
  SPEEDO_TRY(library.find("cudnnFindConvolutionForwardAlgorithm", found.try_forward));
  SPEEDO_TRY(library.find("cudnnGetConvolutionForwardWorkspaceSize", found.size_forward));
  SPEEDO_TRY(library.find("cudnnConvolutionForward", found.forward));
  SPEEDO_TRY(library.find("cudnnConvolutionBiasActivationForward", found.forward_with_activation));
  SPEEDO_TRY(library.find("cudnnGetConvolutionBackwardDataAlgorithm_v7", found.rank_data));
  SPEEDO_TRY(library.find("cudnnFindConvolutionBackwardDataAlgorithm", found.try_data));
  SPEEDO_TRY(library.find("cudnnGetConvolutionBackwardDataWorkspaceSize", found.size_data));
  SPEEDO_TRY(library.find("cudnnConvolutionBackwardData", found.backward_data));
  SPEEDO_TRY(library.find("cudnnGetConvolutionBackwardFilterAlgorithm_v7", found.rank_weights));
  SPEEDO_TRY(library.find("cudnnFindConvolutionBackwardFilterAlgorithm", found.try_weights));
  SPEEDO_TRY(library.find("cudnnGetConvolutionBackwardFilterWorkspaceSize", found.size_weights));
  SPEEDO_TRY(library.find("cudnnConvolutionBackwardFilter", found.backward_weights));
  return found;
}

}  // namespace

Result<CudnnFunctions> load_cudnn() {
  static const Result<CudnnFunctions> found = find_cudnn();
  return found;
}

}  // namespace speedo::gpu
