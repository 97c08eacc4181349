#pragma once

#include "gpu/cudnn/cudnn_descriptors.hpp"

namespace speedo::gpu {

// The functions of each pass under the same names: rank() orders algorithms by heuristics,
// attempt() by trying them, size() says how much working memory one takes, run() runs it.

struct CudnnCall {
  const CudnnFunctions& dnn;
  cudnnHandle_t handle;
  const CudnnDescriptors& of;
};

inline constexpr float kCudnnOne = 1.0F, kCudnnZero = 0.0F;

struct CudnnForward {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Performance = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr ConvolutionPass kPass = ConvolutionPass::kForward;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;

  static cudnnStatus_t rank(const CudnnCall& call, int* count, Performance* results) {
    return call.dnn.rank_forward(call.handle, call.of.src, call.of.weights, call.of.convolution,
                                 call.of.dst, kAlgorithms, count, results);
  }
  static cudnnStatus_t attempt(const CudnnCall& call, int* count, Performance* results) {
    return call.dnn.try_forward(call.handle, call.of.src, call.of.weights, call.of.convolution,
                                call.of.dst, kAlgorithms, count, results);
  }
  static cudnnStatus_t size(const CudnnCall& call, Algorithm algorithm, std::size_t* bytes) {
    return call.dnn.size_forward(call.handle, call.of.src, call.of.weights, call.of.convolution,
                                 call.of.dst, algorithm, bytes);
  }
  static cudnnStatus_t run(const CudnnCall& call, Algorithm algorithm, const DnnArrays& arrays,
                           WorkMemory memory) {
    return call.dnn.forward(call.handle, &kCudnnOne, call.of.src, arrays.src, call.of.weights,
                            arrays.weights, call.of.convolution, algorithm, memory.data,
                            memory.bytes, &kCudnnZero, call.of.dst,
                            const_cast<float*>(arrays.dst));
  }
};

struct CudnnBackwardData {
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr ConvolutionPass kPass = ConvolutionPass::kBackwardData;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;

  static cudnnStatus_t rank(const CudnnCall& call, int* count, Performance* results) {
    return call.dnn.rank_data(call.handle, call.of.weights, call.of.dst, call.of.convolution,
                              call.of.src, kAlgorithms, count, results);
  }
  static cudnnStatus_t attempt(const CudnnCall& call, int* count, Performance* results) {
    return call.dnn.try_data(call.handle, call.of.weights, call.of.dst, call.of.convolution,
                             call.of.src, kAlgorithms, count, results);
  }
  static cudnnStatus_t size(const CudnnCall& call, Algorithm algorithm, std::size_t* bytes) {
    return call.dnn.size_data(call.handle, call.of.weights, call.of.dst, call.of.convolution,
                              call.of.src, algorithm, bytes);
  }
  static cudnnStatus_t run(const CudnnCall& call, Algorithm algorithm, const DnnArrays& arrays,
                           WorkMemory memory) {
    return call.dnn.backward_data(call.handle, &kCudnnOne, call.of.weights, arrays.weights,
                                  call.of.dst, arrays.dst, call.of.convolution, algorithm,
                                  memory.data, memory.bytes, &kCudnnZero, call.of.src,
                                  const_cast<float*>(arrays.src));
  }
};

struct CudnnBackwardWeights {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr ConvolutionPass kPass = ConvolutionPass::kBackwardWeights;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;

  static cudnnStatus_t rank(const CudnnCall& call, int* count, Performance* results) {
    return call.dnn.rank_weights(call.handle, call.of.src, call.of.dst, call.of.convolution,
                                 call.of.weights, kAlgorithms, count, results);
  }
  static cudnnStatus_t attempt(const CudnnCall& call, int* count, Performance* results) {
    return call.dnn.try_weights(call.handle, call.of.src, call.of.dst, call.of.convolution,
                                call.of.weights, kAlgorithms, count, results);
  }
  static cudnnStatus_t size(const CudnnCall& call, Algorithm algorithm, std::size_t* bytes) {
    return call.dnn.size_weights(call.handle, call.of.src, call.of.dst, call.of.convolution,
                                 call.of.weights, algorithm, bytes);
  }
  // Adds to the weights' gradient; but one of bfloat16 it writes: a sum would be rounded each time.
  static cudnnStatus_t run(const CudnnCall& call, Algorithm algorithm, const DnnArrays& arrays,
                           WorkMemory memory) {
    const bool adds = call.of.type() == ElementType::kFloat32;
    return call.dnn.backward_weights(call.handle, &kCudnnOne, call.of.src, arrays.src, call.of.dst,
                                     arrays.dst, call.of.convolution, algorithm, memory.data,
                                     memory.bytes, adds ? &kCudnnOne : &kCudnnZero, call.of.weights,
                                     const_cast<float*>(arrays.weights));
  }
};

}  // namespace speedo::gpu
