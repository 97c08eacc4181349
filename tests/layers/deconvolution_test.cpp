// Deconvolution: gradients, values that Caffe defines, and what it refuses.

#include "support/catch.hpp"
#include "support/gradient_check.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"
#include "support/wrong_layer.hpp"

namespace speedo {
namespace {

TEST_CASE("gradient: Deconvolution") {
  const auto options =
      GENERATE(as<std::string>(), "kernel_size: 3", "kernel_size: 4 stride: 2 pad: 1",
               "kernel_size: 2 stride: 3 bias_term: false", "kernel_size: 1",
               "kernel_size: 4 stride: 2 pad: 1 group: 4 bias_term: false",
               "kernel_size: 3 group: 2 pad: 2 stride: 2", "kernel_size: 2 dilation: 2",
               "kernel_h: 3 kernel_w: 1 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0");
  check_on_all("type: 'Deconvolution' convolution_param { num_output: 4 " + options + " }",
               {.bottoms = {{2, 4, 3, 2}}});
}

TEST_CASE("gradient: Deconvolution over one and three axes, and over two bottoms") {
  check_on_all("type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 3 stride: 2 }",
               {.bottoms = {{2, 3, 4}, {2, 3, 4}}, .tops = 2});
  check_on_all("type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 axis: -4 }",
               {.bottoms = {{1, 2, 2, 3, 2}}});
  check_on_all("type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 axis: 2 }",
               {.bottoms = {{2, 2, 2, 3, 3}}});
}

TEST_CASE("each element of a Deconvolution's bottom makes a kernel, and these overlap") {
  LayerFixture it(
      "type: 'Deconvolution' convolution_param { num_output: 2 kernel_h: 1 kernel_w: 3 stride_h: 1 "
      "stride_w: 2 }",
      test::make_backend(1));
  REQUIRE(it.build({{1, 1, 1, 3}}, 1).has_value());
  REQUIRE(it.parameter(0).shape() == Shape{1, 2, 1, 3});
  REQUIRE(it.parameter(1).shape() == Shape{2});
  it.parameter(0).set_values(it.backend(), std::vector<float>{1, 2, 3, -1, 0, 10});
  it.parameter(1).set_values(it.backend(), std::vector<float>{0.5F, -0.5F});
  it.set_bottom(0, {1, 10, 100});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top(0).shape() == Shape{1, 2, 1, 7});
  REQUIRE(it.top_values(0) == std::vector<float>{1.5F, 2.5F, 13.5F, 20.5F, 130.5F, 200.5F, 300.5F,
                                                 -1.5F, -0.5F, -0.5F, -0.5F, -0.5F, -0.5F, 999.5F});
}

TEST_CASE("a Deconvolution's weights are those of channels, of each group's outputs") {
  LayerFixture it(
      "type: 'Deconvolution' convolution_param { num_output: 6 group: 2 kernel_size: 3 }",
      test::make_backend(1));
  REQUIRE(it.build({{1, 4, 2, 2}}, 1).has_value());
  REQUIRE(it.parameter(0).shape() == Shape{4, 3, 3, 3});
  REQUIRE(it.top(0).shape() == Shape{1, 6, 4, 4});
  REQUIRE(it.reshape({{2, 4, 5, 3}}).has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 6, 7, 5});
}

TEST_CASE("without spatial axes a convolution needs no kernel") {
  for (const std::string type : {"Convolution", "Deconvolution"}) {
    LayerFixture it("type: '" + type + "' convolution_param { num_output: 2 bias_term: false }",
                    test::make_backend(1));
    REQUIRE(it.build({{1, 2}}, 1).has_value());
    it.parameter(0).set_values(it.backend(), std::vector<float>{1, 2, 3, 4});
    it.set_bottom(0, {1, 10});
    REQUIRE(it.forward().has_value());
    const bool transposed = type == "Deconvolution";
    REQUIRE(it.top_values(0) ==
            (transposed ? std::vector<float>{31, 42} : std::vector<float>{21, 43}));
  }
}

TEST_CASE("impossible Deconvolutions are refused by name") {
  const std::vector<WrongLayer> cases{
      {"type: 'Deconvolution' convolution_param { kernel_size: 3 }",
       {{1, 1, 4, 4}},
       1,
       "num_output"},
      {"type: 'Deconvolution' convolution_param { num_output: 3 kernel_size: 3 group: 2 }",
       {{1, 4, 4, 4}},
       1,
       "group 2 must divide both 4 input channels and num_output 3"},
      {"type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 pad: 4 }",
       {{1, 1, 7, 7}},
       1,
       "spatial axis 0 of 1 1 7 7 (49): pad 4 on both sides leaves nothing of the 8"},
      {"type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 }",
       {{1, 1, 4, 0}},
       1,
       "spatial axis 1 of 1 1 4 0 (0): the input has size 0"},
      {"type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 stride: 900000000 }",
       {{1, 1, 1000, 1000}},
       1,
       "more than 2147483647 elements"},
      {"type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 dilation: 70000 }",
       {{1, 1, 4, 4}},
       1,
       "dilation is 70000"},
      {"type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 }",
       {{1, 1, 4, 4}, {1, 1, 4, 4}},
       1,
       "needs as many tops as bottoms"},
  };
  require_refused(GENERATE_COPY(from_range(cases)));
}

}  // namespace
}  // namespace speedo
