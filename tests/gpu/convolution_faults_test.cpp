// Planted faults in the calls of cuDNN, and what the double of it finds.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/convolution_shapes.hpp"
#include "gpu/convolution/convolution.hpp"
#include "gpu/library_bench.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

CudnnFunctions sound() { return test::CudnnDouble::functions(); }

struct DnnFault {
  const char* name;
  void (*plant)(CudnnFunctions&);
  const char* said;
};

std::vector<DnnFault> dnn_faults() {
  return {
      {"a stride of another array",
       [](CudnnFunctions& dnn) {
         dnn.set_tensor = [](cudnnTensorDescriptor_t handle, cudnnDataType_t type, int count,
                             const int* dims, const int* strides) {
           std::vector<int> wrong(strides, strides + count);
           wrong[0] += 8;
           return sound().set_tensor(handle, type, count, dims, wrong.data());
         };
       },
       "leaves block"},
      {"weights of another type",
       [](CudnnFunctions& dnn) {
         dnn.set_filter = [](cudnnFilterDescriptor_t handle, cudnnDataType_t,
                             cudnnTensorFormat_t format, int count, const int* dims) {
           return sound().set_filter(handle, CUDNN_DATA_BFLOAT16, format, count, dims);
         };
       },
       "of several types"},
      {"padding that was forgotten",
       [](CudnnFunctions& dnn) {
         dnn.set_convolution = [](cudnnConvolutionDescriptor_t handle, int count, const int*,
                                  const int* stride, const int* dilation,
                                  cudnnConvolutionMode_t mode, cudnnDataType_t type) {
           const std::vector<int> none(static_cast<std::size_t>(count), 0);
           return sound().set_convolution(handle, count, none.data(), stride, dilation, mode,
                                          type);
         };
       },
       "windows in"},
      {"strides and dilations changed about",
       [](CudnnFunctions& dnn) {
         dnn.set_convolution = [](cudnnConvolutionDescriptor_t handle, int count, const int* pad,
                                  const int* stride, const int* dilation,
                                  cudnnConvolutionMode_t mode, cudnnDataType_t type) {
           return sound().set_convolution(handle, count, pad, dilation, stride, mode, type);
         };
       },
       "windows in"},
      {"groups that were forgotten",
       [](CudnnFunctions& dnn) {
         dnn.set_groups = [](cudnnConvolutionDescriptor_t, int) { return CUDNN_STATUS_SUCCESS; };
       },
       "other axes, channels, groups"},
      {"less working memory than was asked for",
       [](CudnnFunctions& dnn) {
         dnn.size_weights = [](cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
                               cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t,
                               cudnnConvolutionBwdFilterAlgo_t, std::size_t* bytes) {
           *bytes = 16;
           return CUDNN_STATUS_SUCCESS;
         };
       },
       "bytes of working memory"},
      {"a plan of another shape",
       [](CudnnFunctions& dnn) {
         dnn.rank_data = [](cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
                            cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, int, int* count,
                            cudnnConvolutionBwdDataAlgoPerf_t* results) {
           results[0] = {};
           results[0].algo = CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING;
           results[0].determinism = CUDNN_DETERMINISTIC;
           *count = 1;
           return CUDNN_STATUS_SUCCESS;
         };
         dnn.size_data = [](cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
                            cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
                            cudnnConvolutionBwdDataAlgo_t, std::size_t* bytes) {
           *bytes = 1024;
           return CUDNN_STATUS_SUCCESS;
         };
       },
       "this shape has no algorithm"},
      {"descriptors that are left",
       [](CudnnFunctions& dnn) {
         dnn.destroy_filter = [](cudnnFilterDescriptor_t) { return CUDNN_STATUS_SUCCESS; };
       },
       "a filter descriptor was never destroyed"},
      {"a descriptor that is destroyed twice",
       [](CudnnFunctions& dnn) {
         dnn.destroy_convolution = [](cudnnConvolutionDescriptor_t handle) {
           sound().destroy_convolution(handle);
           return sound().destroy_convolution(handle);
         };
       },
       "the windows descriptor is gone"},
      {"a descriptor that is destroyed while its plan lives",
       [](CudnnFunctions& dnn) {
         dnn.rank_weights = [](cudnnHandle_t handle, cudnnTensorDescriptor_t src,
                               cudnnTensorDescriptor_t dst, cudnnConvolutionDescriptor_t windows,
                               cudnnFilterDescriptor_t weights, int wanted, int* count,
                               cudnnConvolutionBwdFilterAlgoPerf_t* results) {
           const auto status = sound().rank_weights(handle, src, dst, windows, weights, wanted,
                                                    count, results);
           sound().destroy_tensor(src);
           return status;
         };
       },
       "the tensor descriptor is gone"},
      {"a handle without its stream",
       [](CudnnFunctions& dnn) {
         dnn.set_stream = [](cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; };
       },
       "no such stream"},
  };
}

// Groups, strides, dilations and padding, all different.
ConvolutionShape faulty_shape() {
  ConvolutionShape shape = shape_without_output({2, 4, 6, 2}, {9, 11}, {3, 2}, {2, 1}, {2, 1},
                                                {1, 2});
  shape.dst_size = {6, 11};
  return shape;
}

void run_all_passes(LibraryBench& bench, const ConvolutionShape& shape) {
  float* const src = bench.put(library_values(src_array(shape).storage_count({}), 1));
  float* const weights = bench.put(library_values(weight_count(shape), 2));
  float* const dst = bench.put(library_values(dst_array(shape).storage_count({}), 3));
  auto made = make_convolution(shape, {bench.products(), bench.dnn()});
  if (!made) return;
  (*made)->forward(src, weights, nullptr, dst);
  (*made)->backward_data(dst, weights, src);
  (*made)->backward_weights(src, dst, weights, nullptr);
  bench.driver().synchronize(bench.queue().stream);
}

TEST_CASE("planted faults of convolutions are found") {
  const DnnFault fault = GENERATE(from_range(dnn_faults()));
  CAPTURE(fault.name);
  const auto log = [&] {
    LibraryBench bench({.dnn = {.measures = false}, .change_cudnn = fault.plant});
    run_all_passes(bench, faulty_shape());
    return bench.shared_log();
  }();
  const std::vector<std::string> said = log->violations();
  INFO((said.empty() ? std::string("nothing") : said.front()));
  CHECK(log->has(fault.said));
}

TEST_CASE("without a planted fault nothing is found") {
  const auto log = [&] {
    LibraryBench bench;
    run_all_passes(bench, faulty_shape());
    CHECK(bench.driver().check().has_value());
    return bench.shared_log();
  }();
  CHECK(log->violations().empty());
}

TEST_CASE("gradients that are written where they must be added show in the numbers") {
  LibraryBench bench({.change_cudnn = [](CudnnFunctions& dnn) {
    dnn.backward_weights = [](cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t src,
                              const void* x, cudnnTensorDescriptor_t dst, const void* dy,
                              cudnnConvolutionDescriptor_t windows,
                              cudnnConvolutionBwdFilterAlgo_t algorithm, void* work,
                              std::size_t bytes, const void*, cudnnFilterDescriptor_t weights,
                              void* dw) {
      static const float zero = 0.0F;
      return sound().backward_weights(handle, alpha, src, x, dst, dy, windows, algorithm, work,
                                      bytes, &zero, weights, dw);
    };
  }});
  const ConvolutionShape shape = faulty_shape();
  auto made = make_convolution(shape, {bench.products(), bench.dnn()});
  REQUIRE(made.has_value());
  const std::vector<float> before(static_cast<std::size_t>(weight_count(shape)), 100.0F);
  float* const weights = bench.put(before);
  (*made)->backward_weights(bench.put(library_values(src_array(shape).storage_count({}), 1)),
                            bench.put(library_values(dst_array(shape).storage_count({}), 2)),
                            weights, nullptr);
  const std::vector<float> after = bench.get(weights, weight_count(shape));
  CHECK(*std::max_element(after.begin(), after.end()) < 50.0F);
}

}  // namespace
}  // namespace speedo::gpu
