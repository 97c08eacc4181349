// Every layer's gradients against finite differences, for its main options, on the CPU backend and
// on the reference backend.

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "support/catch.hpp"
#include "support/gradient_check.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

TEST_CASE("gradient: InnerProduct") {
  const auto options = GENERATE(as<std::string>(), "", "transpose: true", "bias_term: false",
                                "axis: 2", "axis: 0", "axis: -1");
  check_on_all("type: 'InnerProduct' inner_product_param { num_output: 4 " + options + " }",
               {.bottoms = {{3, 2, 5}}});
}

TEST_CASE("gradient: Convolution") {
  const auto options =
      GENERATE(as<std::string>(), "kernel_size: 3", "kernel_size: 3 pad: 1",
               "kernel_size: 2 stride: 2 bias_term: false", "kernel_size: 1",
               "kernel_size: 3 group: 2 pad: 2", "kernel_size: 2 dilation: 2",
               "kernel_h: 3 kernel_w: 1 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0");
  check_on_all("type: 'Convolution' convolution_param { num_output: 4 " + options + " }",
               {.bottoms = {{2, 2, 5, 4}}});
}

TEST_CASE("gradient: Convolution over one and three axes, and over two bottoms") {
  check_on_all("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 pad: 1 }",
               {.bottoms = {{2, 3, 6}}});
  check_on_all("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 2 stride: 2 }",
               {.bottoms = {{1, 2, 4, 3, 4}}});
  check_on_all("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 2 axis: 2 }",
               {.bottoms = {{2, 2, 2, 3, 3}}});
}

TEST_CASE("gradient: Pooling") {
  const auto method = GENERATE(as<std::string>(), "MAX", "AVE");
  const auto options =
      GENERATE(as<std::string>(), "kernel_size: 3 stride: 2", "kernel_size: 3 pad: 1",
               "kernel_size: 2 stride: 2 pad: 1", "global_pooling: true",
               "kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2 round_mode: FLOOR");
  check_on_all("type: 'Pooling' pooling_param { pool: " + method + " " + options + " }",
               {.bottoms = {{2, 3, 6, 5}}, .spacing = 0.05F});
}

TEST_CASE("gradient: ReLU") {
  const GradientCheck check{.bottoms = {{3, 4, 5}}, .kink_range = 0.02F};
  check_on_all("type: 'ReLU'", check);
  check_on_all("type: 'ReLU' relu_param { negative_slope: 0.1 }", check);
}

TEST_CASE("gradient: Dropout") {
  check_on_all("type: 'Dropout' dropout_param { dropout_ratio: 0.3 }", {.bottoms = {{4, 9}}});
  check_on_all("type: 'Dropout'", {.bottoms = {{4, 9}}, .phase = Phase::kTest});
}

TEST_CASE("gradient: LRN") {
  const auto options =
      GENERATE(as<std::string>(), "local_size: 5", "local_size: 3 alpha: 2 k: 2",
               "local_size: 3 beta: 0.5", "local_size: 3 norm_region: WITHIN_CHANNEL",
               "local_size: 5 alpha: 2 norm_region: WITHIN_CHANNEL beta: 1.2");
  check_on_all("type: 'LRN' lrn_param { " + options + " }", {.bottoms = {{2, 6, 3, 4}}});
}

TEST_CASE("gradient: Softmax") {
  const auto options = GENERATE(as<std::string>(), "", "axis: 0", "axis: -1");
  check_on_all("type: 'Softmax' softmax_param { " + options + " }", {.bottoms = {{3, 5, 2}}});
}

TEST_CASE("gradient: SoftmaxWithLoss") {
  const auto options =
      GENERATE(as<std::string>(), "", "ignore_label: 2", "normalize: false", "normalization: FULL",
               "normalization: NONE ignore_label: 0", "normalization: BATCH_SIZE");
  check_on_all("type: 'SoftmaxWithLoss' loss_param { " + options + " }",
               {.bottoms = {{3, 5, 2, 2}, {3, 1, 2, 2}}, .label_bottom = 1, .classes = 5});
  check_on_all("type: 'SoftmaxWithLoss' softmax_param { axis: -1 } loss_param { " + options + " }",
               {.bottoms = {{6, 2, 4}, {6, 2}}, .tops = 2, .label_bottom = 1, .classes = 4});
}

TEST_CASE("gradient: Filter, BatchReindex") {
  check_on_all("type: 'Filter'", {.bottoms = {{6, 3}, {6, 1, 1}}, .label_bottom = 1, .classes = 2});
  check_on_all("type: 'Filter'",
               {.bottoms = {{9, 2, 2}, {9, 5}, {9}}, .tops = 2, .label_bottom = 2, .classes = 2});
  check_on_all("type: 'BatchReindex'",
               {.bottoms = {{4, 3, 2}, {7}}, .label_bottom = 1, .classes = 4});
  check_on_all("type: 'BatchReindex'", {.bottoms = {{5}, {2}}, .label_bottom = 1, .classes = 5});
}

TEST_CASE("gradient: EuclideanLoss") {
  check_on_all("type: 'EuclideanLoss'", {.bottoms = {{4, 3, 2}, {4, 6}}});
}

TEST_CASE("gradient: Concat, Flatten, Split") {
  check_on_all("type: 'Concat'", {.bottoms = {{2, 3, 4}, {2, 1, 4}, {2, 2, 4}}});
  check_on_all("type: 'Concat' concat_param { axis: -1 }", {.bottoms = {{2, 3, 4}, {2, 3, 1}}});
  check_on_all("type: 'Concat' concat_param { concat_dim: 0 }", {.bottoms = {{2, 3}, {1, 3}}});
  check_on_all("type: 'Flatten' flatten_param { axis: 1 end_axis: 2 }",
               {.bottoms = {{2, 3, 2, 2}}});
  check_on_all("type: 'Split'", {.bottoms = {{2, 3}}, .tops = 1});
}

TEST_CASE("gradient: Eltwise") {
  const GradientCheck two{.bottoms = {{2, 3, 4}, {2, 3, 4}}, .low = 0.5F, .high = 2.0F};
  const GradientCheck three{.bottoms = {{2, 3}, {2, 3}, {2, 3}}, .low = 0.5F, .high = 2.0F};
  const auto options = GENERATE(as<std::string>(), "operation: PROD", "operation: SUM",
                                "operation: PROD stable_prod_grad: false");
  check_on_all("type: 'Eltwise' eltwise_param { " + options + " }", two);
  check_on_all("type: 'Eltwise' eltwise_param { " + options + " }", three);
  check_on_all("type: 'Eltwise' eltwise_param { coeff: 0.5 coeff: -2 }", two);
  // Caffe takes coefficients for MAX, and does not read them.
  const auto unread = GENERATE(as<std::string>(), "", "coeff: 3 coeff: -1 coeff: 0");
  check_on_all("type: 'Eltwise' eltwise_param { operation: MAX " + unread + " }",
               {.bottoms = {{2, 3}, {2, 3}, {2, 3}}, .spacing = 0.05F});
}

TEST_CASE("gradient: Reduction") {
  const auto operation = GENERATE(as<std::string>(), "SUM", "ASUM", "SUMSQ", "MEAN");
  const auto options = GENERATE(as<std::string>(), "", "axis: 1", "axis: -1 coeff: -2.5");
  check_on_all("type: 'Reduction' reduction_param { operation: " + operation + " " + options + " }",
               {.bottoms = {{3, 2, 5}}, .kink_range = 0.02F});
}

TEST_CASE("gradient: Tile, Crop, Im2col") {
  const auto axis = GENERATE(as<std::string>(), "0", "1", "-1");
  check_on_all("type: 'Tile' tile_param { tiles: 3 axis: " + axis + " }", {.bottoms = {{2, 3, 4}}});
  check_on_all("type: 'Crop' crop_param { offset: 1 }", {.bottoms = {{2, 3, 5, 6}, {1, 1, 3, 4}}});
  check_on_all("type: 'Crop' crop_param { axis: -3 offset: 0 offset: 2 offset: 1 }",
               {.bottoms = {{2, 3, 5, 6}, {1, 2, 3, 4}}});
  check_on_all("type: 'Crop' crop_param { axis: 0 offset: 2 }", {.bottoms = {{5}, {3}}});
  check_on_all("type: 'Im2col' convolution_param { kernel_size: 3 stride: 2 pad: 1 }",
               {.bottoms = {{2, 2, 5, 4}}});
  check_on_all("type: 'Im2col' convolution_param { kernel_size: 2 dilation: 2 axis: -2 }",
               {.bottoms = {{2, 2, 2, 5}}});
}

TEST_CASE("gradient: MVN") {
  const auto options =
      GENERATE(as<std::string>(), "", "across_channels: true", "normalize_variance: false",
               "normalize_variance: false across_channels: true");
  check_on_all("type: 'MVN' mvn_param { " + options + " }", {.bottoms = {{2, 3, 4, 3}}});
}

TEST_CASE("gradient: Embed") {
  const auto options = GENERATE(as<std::string>(), "", "bias_term: false");
  check_on_all("type: 'Embed' embed_param { num_output: 3 input_dim: 5 " + options + " }",
               {.bottoms = {{4, 2}}, .label_bottom = 0, .classes = 5});
}

TEST_CASE("gradient: Parameter") {
  check_on_all("type: 'Parameter' parameter_param { shape { dim: 2 dim: 3 } }", {});
}

TEST_CASE("gradient: stochastic Pooling") {
  const std::string text =
      "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 }";
  check_on_all(text, {.bottoms = {{2, 2, 5, 6}}, .low = 0.5F, .high = 2.0F, .phase = Phase::kTest});
}

}  // namespace
}  // namespace speedo
