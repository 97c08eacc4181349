// Bad layers and bad input: one line that names the layer, the numbers and the remedy.

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/registry.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"
#include "support/wrong_layer.hpp"

namespace speedo {
namespace {

const std::vector<WrongLayer> kCases{
    {"type: 'ReLU'", {{2}, {2}}, 1, "takes 1 bottom(s), the prototxt gives 2"},
    {"type: 'ReLU'", {{2}}, 2, "makes 1 top(s), the prototxt gives 2"},
    {"type: 'Convolution' convolution_param { num_output: 2 kernel_size: 1 }",
     {{1, 1, 2, 2}, {1, 1, 2, 2}},
     1,
     "needs as many tops as bottoms"},
    {"type: 'InnerProduct'", {{2, 3}}, 1, "num_output > 0"},
    {"type: 'InnerProduct' inner_product_param { num_output: 2 axis: 5 }", {{2, 3}}, 1, "axis 5"},
    {"type: 'InnerProduct' inner_product_param { num_output: 2 }", {{2, 0}}, 1, "empty"},
    {"type: 'InnerProduct' inner_product_param { num_output: 4000000000 }",
     {{2, 3}},
     1,
     "more than 2147483647 elements"},
    {"type: 'Convolution' convolution_param { kernel_size: 3 }", {{1, 1, 4, 4}}, 1, "num_output"},
    {"type: 'Convolution' convolution_param { num_output: 2 }",
     {{1, 1, 4, 4}},
     1,
     "kernel_size is missing"},
    {"type: 'Convolution' convolution_param { num_output: 2 kernel_size: 0 }",
     {{1, 1, 4, 4}},
     1,
     "kernel_size is 0"},
    {"type: 'Convolution' convolution_param { num_output: 2 kernel_h: 3 }",
     {{1, 1, 4, 4}},
     1,
     "kernel_size is 0"},
    {"type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 kernel_h: 3 kernel_w: 3 "
     "}",
     {{1, 1, 4, 4}},
     1,
     "not both"},
    {"type: 'Convolution' convolution_param { num_output: 2 kernel_h: 3 kernel_w: 3 }",
     {{1, 1, 4}},
     1,
     "need 2 spatial axes"},
    {"type: 'Convolution' convolution_param { num_output: 2 kernel_size: [3, 3, 3] }",
     {{1, 1, 4, 4}},
     1,
     "given 3 times for 2 spatial axes"},
    {"type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 stride: 0 }",
     {{1, 1, 4, 4}},
     1,
     "stride is 0"},
    {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 group: 2 }",
     {{1, 3, 4, 4}},
     1,
     "group 2 must divide both 3 input channels and num_output 4"},
    {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 group: 0 }",
     {{1, 3, 4, 4}},
     1,
     "group 0"},
    {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 7 pad: 1 }",
     {{1, 3, 4, 4}},
     1,
     "kernel extent 7 is larger than the padded input 6"},
    {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 4294967295 }",
     {{1, 3, 4, 4}},
     1,
     "kernel_size is 4294967295"},
    {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 1 }",
     {{1, 3, 4, 4}, {1, 3, 4, 5}},
     2,
     "differ in shape"},
    {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 1 axis: -5 }",
     {{1, 3, 4, 4}},
     1,
     "axis -5"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 }", {{2, 3}}, 1, "needs a bottom of 4 axes"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 }",
     {{2, 3, 4, 5, 6}},
     1,
     "needs a bottom of 4 axes"},
    {"type: 'Pooling'", {{1, 1, 4, 4}}, 1, "needs kernel_size"},
    {"type: 'Pooling' pooling_param { kernel_size: 0 }",
     {{1, 1, 4, 4}},
     1,
     "the kernel size must be at least 1"},
    {"type: 'Pooling' pooling_param { kernel_h: 2 }",
     {{1, 1, 4, 4}},
     1,
     "both kernel_h and kernel_w"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 kernel_h: 2 kernel_w: 2 }",
     {{1, 1, 4, 4}},
     1,
     "give either kernel_size or kernel_h and kernel_w, not both"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 stride: 1 stride_h: 2 stride_w: 2 }",
     {{1, 1, 4, 4}},
     1,
     "give either stride or stride_h and stride_w, not both"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 pad_h: 1 }",
     {{1, 1, 4, 4}},
     1,
     "give both pad_h and pad_w"},
    {"type: 'Pooling' pooling_param { kernel_size: 4294967295 }",
     {{1, 1, 4, 4}},
     1,
     "kernel must be at most 1073741824"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 stride: 0 }", {{1, 1, 4, 4}}, 1, "stride"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 pad: 2 }", {{1, 1, 4, 4}}, 1, "pad 2 x 2"},
    {"type: 'Pooling' pooling_param { kernel_size: 9 }", {{1, 1, 4, 4}}, 1, "larger than"},
    {"type: 'Pooling' pooling_param { kernel_size: 2 stride: 3 }",
     {{1, 1, 9, 9}},
     1,
     "round_mode: FLOOR"},
    {"type: 'Pooling' pooling_param { global_pooling: true kernel_size: 2 }",
     {{1, 1, 4, 4}},
     1,
     "global_pooling"},
    {"type: 'Pooling' pooling_param { pool: AVE kernel_size: 2 }", {{1, 1, 4, 4}}, 2, "mask"},
    {"type: 'LRN' lrn_param { local_size: 4 }", {{1, 1, 4, 4}}, 1, "odd"},
    {"type: 'LRN'", {{1, 4}}, 1, "4 axes"},
    {"type: 'Dropout' dropout_param { dropout_ratio: 1 }", {{4}}, 1, "dropout_ratio is 1"},
    {"type: 'Dropout' dropout_param { dropout_ratio: nan }", {{4}}, 1, "dropout_ratio is nan"},
    {"type: 'Clip' clip_param { min: 1 max: -1 }", {{4}}, 1, "min 1 is above max -1"},
    {"type: 'Clip'", {{4}}, 1, "needs min and max"},
    {"type: 'Exp' exp_param { base: 0 }", {{4}}, 1, "base 0 must be above 0"},
    {"type: 'Log' log_param { base: 1 }", {{4}}, 1, "base 1 must be above 0 and not 1"},
    {"type: 'Softmax' softmax_param { axis: 2 }", {{2, 3}}, 1, "axis 2"},
    {"type: 'SoftmaxWithLoss'", {{2, 3}, {3}}, 1, "need 2 labels, the label bottom has 3"},
    {"type: 'SoftmaxWithLoss'", {{2, 3}, {1, 2}}, 1, "same first axis, they are 2 3 (6) and"},
    {"type: 'Accuracy'", {{2, 3}, {3}}, 1, "need 2 labels, the label bottom has 3"},
    {"type: 'Accuracy' accuracy_param { top_k: 4 }", {{2, 3}, {2}}, 1, "top_k is 4"},
    {"type: 'Accuracy' accuracy_param { top_k: 0 }", {{2, 3}, {2}}, 1, "top_k is 0"},
    {"type: 'EuclideanLoss'", {{2, 3}, {2, 4}}, 1, "same first axis and count"},
    {"type: 'Concat'", {{2, 3}, {3, 3}}, 1, "must agree on every axis but 1"},
    {"type: 'Concat'", {{2, 3}, {2}}, 1, "must agree"},
    {"type: 'Concat' concat_param { axis: 1 concat_dim: 1 }", {{2, 3}}, 1, "not both"},
    {"type: 'Concat' concat_param { concat_dim: 4294967295 }", {{2, 3}}, 1, "does not exist"},
    {"type: 'Flatten' flatten_param { axis: 2 end_axis: 0 }", {{2, 3, 4}}, 1, "after end_axis 0"},
    {"type: 'Eltwise'", {{2, 3}}, 1, "takes at least 2 bottom(s)"},
    {"type: 'Eltwise'", {{2, 3}, {3, 2}}, 1, "one shape"},
    {"type: 'Eltwise' eltwise_param { coeff: 1 }", {{2}, {2}}, 1, "given 1 times for 2 bottoms"},
    {"type: 'Eltwise' eltwise_param { operation: PROD coeff: 1 coeff: 1 }",
     {{2}, {2}},
     1,
     "does not go with operation: PROD"},
    {"type: 'BatchNorm'", {{2, 3}, {3}}, 1, "takes 1 bottom(s)"},
    {"type: 'BatchNorm'", {{0, 3}}, 1, "empty"},
    {"type: 'BatchNorm' batch_norm_param { eps: -1 }", {{2, 3}}, 1, "eps is -1"},
    {"type: 'BatchNorm' batch_norm_param { eps: nan }", {{2, 3}}, 1, "eps is nan"},
    {"type: 'BatchNorm' batch_norm_param { moving_average_fraction: 1.5 }",
     {{2, 3}},
     1,
     "moving_average_fraction is 1.5"},
    {"type: 'Scale' scale_param { axis: 4 }", {{2, 3, 4}}, 1, "axis 4"},
    {"type: 'Scale' scale_param { num_axes: -2 }", {{2, 3, 4}}, 1, "num_axes is -2"},
    {"type: 'Scale' scale_param { axis: 1 num_axes: 3 }",
     {{2, 3, 4}},
     1,
     "axis 1 and num_axes 3 go beyond the 3 axes"},
    {"type: 'Scale'", {{2, 3, 4}, {4}}, 1, "a factor of shape 4 (4) does not fit the bottom 2 3 4"},
    {"type: 'Scale' scale_param { axis: -1 }", {{2, 3, 4}, {4, 2}}, 1, "from axis 2 on"},
    {"type: 'Bias' bias_param { axis: -4 }", {{2, 3, 4}}, 1, "axis -4"},
    {"type: 'Bias' bias_param { num_axes: 2147483647 }", {{2, 3}}, 1, "go beyond the 2 axes"},
    {"type: 'Bias'", {{2, 3, 4}, {2, 3}}, 1, "does not fit"},
    {"type: 'PReLU'", {{5}}, 1, "2 axes or more (N x C ...), it has 1"},
    {"type: 'Filter'", {{2, 3}, {2}}, 2, "1 for 2 bottoms, the prototxt gives 2"},
    {"type: 'Filter'", {{2, 3}, {2, 2}}, 1, "the selector needs one value an item"},
    {"type: 'Filter'", {{3}, {2, 1}}, 1, "the selector is for 2 items"},
    {"type: 'BatchReindex'", {{}, {2}}, 1, "no axis of items"},
    {"type: 'BatchReindex'", {{3}, {2, 1}}, 1, "need 1 axis"},
    {"type: 'Slice'", {{2, 3}}, 2, "axis 1 of size 3 cannot be cut into 2 equal parts"},
    {"type: 'Slice' slice_param { slice_point: 1 }", {{2, 3}}, 3, "3 tops need 2 slice_points"},
    {"type: 'Slice' slice_param { slice_point: 3 }", {{2, 3}}, 2, "slice_point 3"},
    {"type: 'Slice' slice_param { slice_point: 2 slice_point: 2 }",
     {{2, 6}},
     3,
     "slice_point 2 must lie between 2 and axis 1's size 6"},
    {"type: 'Slice' slice_param { axis: 1 slice_dim: 1 }", {{2, 4}}, 2, "not both"},
    {"type: 'Slice' slice_param { slice_dim: 4294967295 }", {{2, 4}}, 2, "does not exist"},
    {"type: 'Slice' slice_param { axis: 2 }", {{2, 4}}, 2, "axis 2"},
    {"type: 'Reshape' reshape_param { shape { dim: -1 dim: -1 } }", {{2, 3}}, 1, "more than one"},
    {"type: 'Reshape' reshape_param { shape { dim: -2 } }", {{2, 3}}, 1, "dim -2"},
    {"type: 'Reshape' reshape_param { axis: 3 }", {{2, 3}}, 1, "axis 3 is not one of 2 3"},
    {"type: 'Reshape' reshape_param { axis: -4 }", {{2, 3}}, 1, "axis -4"},
    {"type: 'Reshape' reshape_param { axis: -2147483648 }", {{2, 3}}, 1, "axis -2147483648"},
    {"type: 'Reshape' reshape_param { num_axes: -2 }", {{2, 3}}, 1, "num_axes is -2"},
    {"type: 'Reshape' reshape_param { axis: 1 num_axes: 2 }", {{2, 3}}, 1, "beyond the 2 axes"},
    {"type: 'Reshape' reshape_param { shape { dim: 2 dim: 3 dim: 0 } }",
     {{2, 3}},
     1,
     "a 0 for axis 2"},
    {"type: 'Reshape' reshape_param { shape { dim: 4 dim: -1 } }",
     {{2, 3}},
     1,
     "6 elements, which the product 4"},
    {"type: 'Reshape' reshape_param { shape { dim: 4 } }", {{2, 3}}, 1, "the counts differ"},
    {"type: 'Reshape' reshape_param { shape { dim: 65536 dim: 65536 dim: -1 } }",
     {{2, 3}},
     1,
     "elements"},
    {"type: 'Reduction' reduction_param { axis: 2 }", {{2, 3}}, 1, "axis 2"},
    {"type: 'Reduction'", {{}}, 1, "axis 0"},
    {"type: 'ArgMax' argmax_param { top_k: 0 }", {{2, 3}}, 1, "top_k is 0, it must be 1 to 3"},
    {"type: 'ArgMax' argmax_param { top_k: 4000000000 }", {{2, 3}}, 1, "top_k is 4000000000"},
    {"type: 'ArgMax' argmax_param { top_k: 3 axis: -2 }", {{2, 3}}, 1, "must be 1 to 2"},
    {"type: 'ArgMax' argmax_param { axis: 2 }", {{2, 3}}, 1, "axis 2"},
    {"type: 'HingeLoss'", {{2, 3}, {3}}, 1, "same first axis"},
    {"type: 'HingeLoss'", {{2, 3}, {2, 2}}, 1, "need 2 labels, the label bottom has 4"},
    {"type: 'HingeLoss'", {{0, 3}, {0}}, 1, "empty"},
    {"type: 'HingeLoss'", {{}, {}}, 1, "same first axis"},
    {"type: 'SigmoidCrossEntropyLoss'", {{2, 3}, {2, 4}}, 1, "a target for each score"},
    {"type: 'SigmoidCrossEntropyLoss'", {{2, 3}, {3, 2}}, 1, "same first axis"},
    {"type: 'MultinomialLogisticLoss'", {{2, 3}, {2, 3}}, 1, "need 2 labels"},
    {"type: 'InfogainLoss'", {{2, 3}, {2}}, 1, "infogain_loss_param { source }"},
    {"type: 'InfogainLoss'", {{2, 3}, {2}, {2, 3}}, 1, "needs 3 x 3 elements for 3 classes"},
    {"type: 'InfogainLoss'", {{2, 3}, {3}, {3, 3}}, 1, "need 2 labels, the label bottom has 3"},
    {"type: 'InfogainLoss'", {{2, 3}, {1, 2}, {3, 3}}, 1, "same first axis"},
    {"type: 'InfogainLoss' infogain_loss_param { axis: 3 }",
     {{2, 3}, {2}, {3, 3}},
     1,
     "axis 3 does not exist"},
    {"type: 'InfogainLoss' loss_param { normalize: true }",
     {{2, 3}, {2}, {3, 3}},
     1,
     "use normalization"},
    {"type: 'ContrastiveLoss'", {{2, 3}, {2, 3}}, 1, "takes 3 bottom(s)"},
    {"type: 'ContrastiveLoss'", {{2, 3}, {2, 4}, {2}}, 1, "pairs of vectors of one length"},
    {"type: 'ContrastiveLoss'", {{2, 3, 2}, {2, 3, 2}, {2}}, 1, "pairs of vectors"},
    {"type: 'ContrastiveLoss'", {{2, 3}, {3, 3}, {2}}, 1, "same first axis"},
    {"type: 'ContrastiveLoss'", {{2, 3}, {2, 3}, {3}}, 1, "each of 2 pairs"},
    {"type: 'Parameter' parameter_param { shape { dim: 2 dim: 0 } }", {}, 1, "empty"},
    {"type: 'Parameter' parameter_param { shape { dim: -2 } }", {}, 1, "negative"},
    {"type: 'Parameter'", {{2}}, 1, "takes 0 bottom(s)"},
    {"type: 'Tile'", {{2, 3}}, 1, "needs tiles"},
    {"type: 'Tile' tile_param { tiles: 0 }", {{2, 3}}, 1, "tiles is 0"},
    {"type: 'Tile' tile_param { tiles: -3 }", {{2, 3}}, 1, "tiles is -3"},
    {"type: 'Tile' tile_param { tiles: 2 axis: 5 }", {{2, 3}}, 1, "axis 5"},
    {"type: 'Tile' tile_param { tiles: 2147483647 }", {{2, 3}}, 1, "elements"},
    {"type: 'Embed' embed_param { input_dim: 3 }", {{2}}, 1, "num_output > 0"},
    {"type: 'Embed' embed_param { num_output: 3 }", {{2}}, 1, "input_dim > 0"},
    {"type: 'Embed' embed_param { num_output: 4000000000 input_dim: 4000000000 }",
     {{2}},
     1,
     "elements"},
    {"type: 'Crop'", {{2, 3, 4, 4}}, 1, "takes 2 bottom(s)"},
    {"type: 'Crop'", {{2, 3, 4, 4}, {2, 3, 5, 4}}, 1, "cannot cut 5 elements from offset 0 on"},
    {"type: 'Crop' crop_param { offset: 4294967295 }",
     {{2, 3, 4, 4}, {2, 3, 2, 2}},
     1,
     "from offset 4294967295"},
    {"type: 'Crop' crop_param { offset: 1 offset: 1 offset: 1 }",
     {{2, 3, 4, 4}, {2, 3, 2, 2}},
     1,
     "given 3 times for the 2 axes"},
    {"type: 'Crop' crop_param { axis: 4 }", {{2, 3, 4, 4}, {2, 3, 2, 2}}, 1, "axis 4"},
    {"type: 'Crop'", {{2, 3, 4, 4}, {2, 2}}, 1, "needs the 4 axes"},
    {"type: 'MVN'", {{2, 3, 4, 4, 2}}, 1, "1 to 4 axes"},
    {"type: 'MVN' mvn_param { eps: -1 }", {{2, 3}}, 1, "eps is -1"},
    {"type: 'MVN' mvn_param { eps: nan }", {{2, 3}}, 1, "eps is nan"},
    {"type: 'Im2col' convolution_param { kernel_size: 2 }", {{2, 3}}, 1, "needs a spatial axis"},
    {"type: 'Im2col'", {{2, 3, 4}}, 1, "kernel_size is missing"},
    {"type: 'Im2col' convolution_param { kernel_size: 5 }", {{2, 3, 4}}, 1, "kernel extent 5"},
    {"type: 'Im2col' convolution_param { kernel_size: 60000 pad: 65535 }",
     {{2, 3, 4, 4}},
     1,
     "channels and kernel"},
    {"type: 'Im2col' convolution_param { kernel_size: 2 axis: 7 }", {{2, 3, 4}}, 1, "axis 7"},
    {"type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 pad: 1 }",
     {{1, 1, 4, 4}},
     1,
     "STOCHASTIC takes no padding"},
    {"type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 }",
     {{1, 1, 4, 4}},
     2,
     "mask"},
    {"type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 }",
     {{1, 1, 5000, 5000}},
     1,
     "at most 16777216 elements"},
    {"type: 'MemoryData'", {}, 2, "above 0; they are 0, 0, 0 and 0"},
    {"type: 'MemoryData' memory_data_param { batch_size: 2 channels: 1 height: 1 width: 1 }",
     {},
     1,
     "makes 2 top(s)"},
    {"type: 'MemoryData' memory_data_param { batch_size: 65536 channels: 65536 height: 65536 "
     "width: 65536 }",
     {},
     2,
     "elements"},
    {"type: 'Input'", {}, 1, "0 shape(s)"},
    {"type: 'Input' input_param { shape { dim: -1 } }", {}, 1, "negative"},
    {"type: 'Input' input_param { shape { dim: 65536 dim: 65536 dim: 65536 } }", {}, 1, "elements"},
    {"type: 'DummyData'", {}, 1, "needs one shape"},
    {"type: 'DummyData' dummy_data_param { shape { dim: 2 } data_filler { type: 'moon' } }",
     {},
     1,
     "moon"},
};

TEST_CASE("impossible layers are refused by name") {
  require_refused(GENERATE(from_range(kCases)));
}

TEST_CASE("a layer that cannot work in place says so") {
  for (const std::string text : {"type: 'LRN'", "type: 'Reduction'", "type: 'ArgMax'",
                                 "type: 'Tile' tile_param { tiles: 1 }",
                                 "type: 'Im2col' convolution_param { kernel_size: 1 }",
                                 "type: 'Embed' embed_param { num_output: 1 input_dim: 1 }"}) {
    LayerFixture it(text, test::make_backend(1));
    const auto built = it.build({{1, 3, 2, 2}}, 1, true);
    REQUIRE_FALSE(built.has_value());
    REQUIRE(built.error().message.find("cannot work in place") != std::string::npos);
  }
  for (const std::string operation : {"SUM", "PROD", "MAX"}) {
    LayerFixture it("type: 'Eltwise' eltwise_param { operation: " + operation + " }",
                    test::make_backend(1));
    const auto built = it.build({{3, 2}, {3, 2}}, 1, true);
    REQUIRE_FALSE(built.has_value());
    REQUIRE(built.error().message.find("cannot work in place") != std::string::npos);
  }
  LayerFixture it("type: 'MVN'", test::make_backend(1));
  const auto built = it.build({{3, 2}}, 1, true);
  REQUIRE_FALSE(built.has_value());
  REQUIRE(built.error().message.find("in place its bottom must have 4, it has 2") !=
          std::string::npos);
}

TEST_CASE("a bottom that changes to what the weights do not fit is refused") {
  LayerFixture it("type: 'InnerProduct' inner_product_param { num_output: 2 }",
                  test::make_backend(1));
  REQUIRE(it.build({{2, 800}}, 1).has_value());
  const auto refused = it.reshape({{2, 500}});
  REQUIRE_FALSE(refused.has_value());
  REQUIRE(refused.error().message.find("800 inputs") != std::string::npos);
  REQUIRE(refused.error().message.find("gives 500") != std::string::npos);
}

TEST_CASE("channels that are not those of the statistics or slopes are refused") {
  for (const std::string type : {"BatchNorm", "PReLU", "Scale", "Bias"}) {
    CAPTURE(type);
    LayerFixture it("type: '" + type + "'", test::make_backend(1));
    REQUIRE(it.build({{2, 3, 4}}, 1).has_value());
    const auto refused = it.reshape({{2, 5, 4}});
    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().message.find("layer 'it' (" + type) == 0);
    REQUIRE(refused.error().message.find("2 5 4") != std::string::npos);
  }
}

TEST_CASE("labels out of range are data errors with value, place and range") {
  for (const std::string type :
       {"SoftmaxWithLoss", "Accuracy", "HingeLoss", "MultinomialLogisticLoss"}) {
    const bool may_ignore = type == "SoftmaxWithLoss" || type == "Accuracy";
    const std::string hint = may_ignore ? " (those to be passed over: ignore_label)" : "";
    LayerFixture it("type: '" + type + "'", test::make_backend(1));
    REQUIRE(it.build({{4, 10}, {4}}, 1).has_value());
    it.set_bottom(1, {1, 2, 3, 12});
    const auto done = it.forward();
    REQUIRE_FALSE(done.has_value());
    REQUIRE(done.error().code == ErrorCode::kData);
    REQUIRE(
        done.error().message ==
        "layer 'it' (" + type +
            "): label 12 at index 3 is outside 0..9: set num_output of the "
            "layer that makes the scores to 13 at least, or correct the labels" +
            hint);
    it.set_bottom(1, {1, -2, 3, 4});
    REQUIRE(it.forward().error().message ==
            "layer 'it' (" + type +
                "): label -2 at index 1 is outside 0..9: correct the labels" + hint);
  }
}

TEST_CASE("layer types: known, not built, unknown") {
  caffe::LayerParameter message;
  message.set_name("it");
  for (const auto type : layer_types()) {
    message.set_type(std::string(type));
    REQUIRE(check_layer_type(message).has_value());
    if (registered_expansion(type) == nullptr) REQUIRE(make_layer(message).has_value());
  }
  message.set_type("Python");
  message.mutable_python_param()->set_module("pascal_layers");
  auto made = make_layer(message);
  REQUIRE(made.error().code == ErrorCode::kUnsupported);
  REQUIRE(made.error().message.find("layer type Python runs code of the module 'pascal_layers'") !=
          std::string::npos);
  message.set_type("Convolutoin");
  made = make_layer(message);
  REQUIRE(made.error().code == ErrorCode::kConfig);
  REQUIRE(made.error().message.find("layer 'it'") == 0);
  REQUIRE(made.error().message.find("did you mean 'Convolution'") != std::string::npos);
  message.clear_type();
  REQUIRE(make_layer(message).error().code == ErrorCode::kConfig);
}

}  // namespace
}  // namespace speedo
