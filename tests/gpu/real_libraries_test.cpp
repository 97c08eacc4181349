// The libraries of this machine, where they are: their functions are found, and take what
// convolutions and products are described by. Nothing is computed, which needs no GPU.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/convolution_shapes.hpp"
#include "gpu/cublas/cublas_lt.hpp"
#include "gpu/cudnn/cudnn_descriptors.hpp"
#include "gpu/cudnn/cudnn_functions.hpp"
#include "gpu/library/shared_library.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"

namespace speedo::gpu {
namespace {

std::vector<ConvolutionShape> described_shapes() {
  const auto shape = [](Sizes counts, Sizes src, Sizes dst, Sizes kernel, Sizes stride, Sizes pad) {
    ConvolutionShape made = shape_without_output(std::move(counts), std::move(src), kernel,
                                                 std::move(stride), std::move(pad),
                                                 Sizes(kernel.size(), 1));
    made.dst_size = std::move(dst);
    return made;
  };
  return {
      shape({256, 3, 96, 1}, {227, 227}, {55, 55}, {11, 11}, {4, 4}, {0, 0}),
      shape({8, 96, 256, 2}, {27, 27}, {27, 27}, {5, 5}, {1, 1}, {2, 2}),
      shape({2, 1, 20, 1}, {28, 28}, {24, 24}, {5, 5}, {1, 1}, {0, 0}),
      shape({2, 32, 32, 32}, {9, 9}, {9, 9}, {3, 3}, {1, 1}, {1, 1}),
      shape({4, 6, 4, 1}, {}, {}, {}, {}, {}),
      shape({3, 4, 6, 2}, {17}, {9}, {3}, {2}, {1}),
      shape({2, 2, 3, 1}, {5, 6, 7}, {5, 3, 9}, {3, 2, 3}, {1, 2, 1}, {1, 0, 2}),
      shape({1, 2, 3, 1}, {2, 2}, {9, 9}, {2, 2}, {1, 1}, {4, 4}),
  };
}

// What cuDNN makes of the source, the weights and the windows: batch, outputs, axes.
std::vector<std::int64_t> output_of(const CudnnDescriptors& descriptors, std::size_t axes) {
  const auto library = SharedLibrary::load(fmt::format("libcudnn.so.{}", CUDNN_MAJOR), "");
  decltype(&::cudnnGetConvolutionNdForwardOutputDim) get_output = nullptr;
  REQUIRE(library.has_value());
  REQUIRE(library->find("cudnnGetConvolutionNdForwardOutputDim", get_output).has_value());
  std::vector<int> dims(axes + 2);
  REQUIRE(get_output(descriptors.convolution, descriptors.src, descriptors.weights,
                     static_cast<int>(dims.size()), dims.data()) == CUDNN_STATUS_SUCCESS);
  return {dims.begin(), dims.end()};
}

TEST_CASE("cuDNN takes the descriptors of convolutions, of all layouts") {
  const auto functions = load_cudnn();
  if (!functions) SPEEDO_SKIP(functions.error().message);
  CHECK(functions->get_version() / 10000 == CUDNN_MAJOR);
  ConvolutionShape shape = GENERATE(from_range(described_shapes()));
  const LayoutKind kind = GENERATE(LayoutKind::kPlain, LayoutKind::kChannelsLast,
                                   LayoutKind::kChannelsLastBfloat16);
  const bool is_last = kind != LayoutKind::kPlain;
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  CAPTURE(shape.batch, shape.channels, shape.outputs, shape.groups, shape.src_size, is_last);
  CudnnDescriptors descriptors(*functions);
  const auto described = descriptors.describe(shape, {.weights_last = is_last});
  INFO((described ? std::string() : described.error().message));
  REQUIRE(described.has_value());
  std::vector<std::int64_t> expected{shape.batch, shape.outputs};
  expected.resize(2 + std::max<std::size_t>(2, shape.kernel.size()) - shape.kernel.size(), 1);
  expected.insert(expected.end(), shape.dst_size.begin(), shape.dst_size.end());
  CHECK(output_of(descriptors, expected.size() - 2) == expected);
  for (const cudnnMathType_t math : {CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH,
                                     CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION}) {
    CHECK(descriptors.set_math(math).has_value());
  }
}

TEST_CASE("cuBLASLt takes the descriptors of products") {
  const auto functions = load_cublas_lt();
  if (!functions) SPEEDO_SKIP(functions.error().message);
  CHECK(functions->get_version() / 10000 == CUBLAS_VER_MAJOR);
  for (const auto compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
                             CUBLAS_COMPUTE_32F_FAST_16BF}) {
    cublasLtMatmulDesc_t task = nullptr;
    CHECK(functions->create_task(&task, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
    const cublasOperation_t turned = CUBLAS_OP_T;
    CHECK(functions->set_task(task, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned) ==
          CUBLAS_STATUS_SUCCESS);
    CHECK(functions->destroy_task(task) == CUBLAS_STATUS_SUCCESS);
  }
  cublasLtMatrixLayout_t layout = nullptr;
  CHECK(functions->create_layout(&layout, CUDA_R_16BF, 5, 7, 9) == CUBLAS_STATUS_SUCCESS);
  CHECK(functions->destroy_layout(layout) == CUBLAS_STATUS_SUCCESS);
  CHECK(functions->create_layout(&layout, CUDA_R_32F, 5, 7, 9) == CUBLAS_STATUS_SUCCESS);
  const std::int32_t count = 3;
  const std::int64_t step = 0;
  CHECK(functions->set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(functions->set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                              sizeof step) == CUBLAS_STATUS_SUCCESS);
  CHECK(functions->destroy_layout(layout) == CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace speedo::gpu
