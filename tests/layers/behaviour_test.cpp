// What layers do beside their gradients: values that Caffe defines, and randomness.

#include <algorithm>
#include <limits>
#include <numeric>

#include <speedo/backend/backend.hpp>

#include "core/layers/pooling.hpp"
#include "support/catch.hpp"
#include "support/device_values.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"

namespace speedo {
namespace {

TEST_CASE("pooled_size follows Caffe's rounding and clipping") {
  // Rounding up, and down.
  REQUIRE(*pooled_size(7, 3, 2, 0, true, false) == 3);
  REQUIRE(*pooled_size(8, 3, 2, 0, true, false) == 4);
  REQUIRE(*pooled_size(8, 3, 2, 0, false, false) == 3);
  REQUIRE(*pooled_size(112, 3, 2, 0, true, false) == 56);
  // With padding, a last window that would start beyond the image is dropped.
  REQUIRE(*pooled_size(6, 2, 2, 1, true, true) == 4);
  REQUIRE(*pooled_size(5, 2, 2, 1, true, true) == 3);
  // A kernel larger than the image is possible while one window starts inside.
  REQUIRE(*pooled_size(3, 4, 2, 0, true, false) == 1);
  REQUIRE_FALSE(pooled_size(3, 5, 2, 0, true, false).has_value());
  REQUIRE_FALSE(pooled_size(3, 4, 2, 0, false, false).has_value());
  // Caffe computes a window wholly outside here, and crashes in its backward pass.
  REQUIRE_FALSE(pooled_size(9, 2, 3, 0, true, false).has_value());
  REQUIRE(*pooled_size(9, 2, 3, 0, false, false) == 3);
  // With padding along the other axis Caffe drops that window.
  REQUIRE(*pooled_size(9, 2, 3, 0, true, true) == 3);
  REQUIRE(*pooled_size(5, 1, 3, 0, true, true) == 2);
}

TEST_CASE("padding along one axis drops windows beyond the image along both") {
  const std::string method = GENERATE("MAX", "AVE");
  LayerFixture it("type: 'Pooling' pooling_param { pool: " + method +
                      " kernel_h: 1 kernel_w: 3 stride: 3 pad_h: 0 pad_w: 1 }",
                  test::make_backend(1));
  REQUIRE(it.build({{1, 1, 5, 5}}, 1).has_value());
  REQUIRE(it.top(0).shape() == Shape{1, 1, 2, 2});
  std::vector<float> values(25);
  std::iota(values.begin(), values.end(), 1.0F);
  it.set_bottom(0, values);
  REQUIRE(it.forward().has_value());
  // Rows 0 and 3; columns 0 to 1 beside a padding that counts, and 2 to 4.
  const std::vector<float> expected =
      method == "MAX" ? std::vector<float>{2, 5, 17, 20} : std::vector<float>{1, 4, 11, 19};
  REQUIRE(it.top_values(0) == expected);
}

TEST_CASE("what is not 0 passes a filter") {
  LayerFixture it("type: 'Filter'", test::make_backend(1));
  REQUIRE(it.build({{4, 2}, {4}, {4, 1, 1}}, 2).has_value());
  it.set_bottom(0, {1, 2, 3, 4, 5, 6, 7, 8});
  it.set_bottom(1, {10, 20, 30, 40});
  it.set_bottom(2, {-0.5F, 0, -0.0F, 2});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 2});
  REQUIRE(it.top_values(0) == std::vector<float>{1, 2, 7, 8});
  REQUIRE(it.top_values(1) == std::vector<float>{10, 40});
  it.set_bottom(2, {0, 0, 0, 0});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top(0).shape() == Shape{0, 2});
}

TEST_CASE("indices of a batch are cut to whole numbers and must be of its items") {
  LayerFixture it("type: 'BatchReindex'", test::make_backend(1));
  REQUIRE(it.build({{3, 2}, {4}}, 1).has_value());
  it.set_bottom(0, {1, 2, 3, 4, 5, 6});
  it.set_bottom(1, {2, 0, 2, 1.7F});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{5, 6, 1, 2, 5, 6, 3, 4});
  for (const float wrong : {-1.0F, 3.0F, 1e30F, std::numeric_limits<float>::quiet_NaN()}) {
    it.set_bottom(1, {2, wrong, 2, 1});
    const auto refused = it.forward();
    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().code == ErrorCode::kData);
    REQUIRE(refused.error().message.find("at 1 is outside 0..2") != std::string::npos);
  }
}

TEST_CASE("accuracy counts ties against the true class") {
  LayerFixture it("type: 'Accuracy'", test::make_backend(1));
  REQUIRE(it.build({{4, 3}, {4}}, 2).has_value());
  it.set_bottom(0, {0.5F, 0.5F, 0.0F,  //
                    0.1F, 0.7F, 0.2F,  //
                    0.3F, 0.3F, 0.4F,  //
                    0.9F, 0.1F, 0.0F});
  it.set_bottom(1, {0, 1, 2, 1});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{0.5F});
  REQUIRE(it.top_values(1) == std::vector<float>{0.0F, 0.5F, 1.0F});
}

TEST_CASE("accuracy cuts labels to whole numbers, also those to be ignored") {
  LayerFixture it("type: 'Accuracy' accuracy_param { ignore_label: 2 }", test::make_backend(1));
  REQUIRE(it.build({{4, 2}, {4}}, 1).has_value());
  it.set_bottom(0, {0, 1, 0, 1, 0, 1, 0, 1});
  it.set_bottom(1, {2.5F, 2.0F, 1.75F, 0.5F});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>{0.5F});
}

TEST_CASE("dropout scales what it keeps, and a pass can be repeated") {
  LayerFixture it("type: 'Dropout' dropout_param { dropout_ratio: 0.25 }", test::make_backend(2));
  REQUIRE(it.build({{200, 50}}, 1).has_value());
  it.set_bottom(0, std::vector<float>(10000, 3.0F));
  REQUIRE(it.forward().has_value());
  const auto first = it.top_values(0);
  const auto kept = std::count(first.begin(), first.end(), 4.0F);
  REQUIRE(kept + std::count(first.begin(), first.end(), 0.0F) == 10000);
  REQUIRE(static_cast<double>(kept) == Approx(7500.0).margin(200.0));
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == first);
}

TEST_CASE("dropout in place gives what it gives beside") {
  const std::string text = "type: 'Dropout'";
  LayerFixture beside(text, test::make_backend(1)), in_place(text, test::make_backend(1));
  REQUIRE(beside.build({{30}}, 1).has_value());
  REQUIRE(in_place.build({{30}}, 1, true).has_value());
  for (LayerFixture* it : {&beside, &in_place}) {
    it->set_bottom(0, std::vector<float>(30, 1.5F));
    REQUIRE(it->forward().has_value());
  }
  REQUIRE(in_place.top_values(0) == beside.top_values(0));
}

TEST_CASE("dummy data: constants stay, the others are drawn anew") {
  LayerFixture it(
      "type: 'DummyData' dummy_data_param { shape { dim: 3 dim: 2 } shape { dim: 4 } "
      "data_filler { value: 2.5 } data_filler { type: 'uniform' min: -1 max: 1 } }",
      test::make_backend(1));
  REQUIRE(it.build({}, 2).has_value());
  REQUIRE(it.top(0).shape() == Shape{3, 2});
  REQUIRE(it.top(1).shape() == Shape{4});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0) == std::vector<float>(6, 2.5F));
  const auto drawn = it.top_values(1);
  for (std::size_t top : {0, 1}) {
    test::set_value(it.backend().device(), it.top(top).data(), 7.0F);
  }
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0)[0] == 7.0F);
  REQUIRE(it.top_values(1) == drawn);  // the fixture repeats its random numbers
}

TEST_CASE("dummy data reads the old four-number shape") {
  LayerFixture it(
      "type: 'DummyData' dummy_data_param { num: 2 channels: 3 channels: 1 height: 4 width: 5 }",
      test::make_backend(1));
  REQUIRE(it.build({}, 2).has_value());
  REQUIRE(it.top(0).shape() == Shape{2, 3, 4, 5});
  REQUIRE(it.top(1).shape() == Shape{2, 1, 4, 5});
}

TEST_CASE("flatten, split and a concat of one share their bottom's memory") {
  for (const std::string type : {"Flatten", "Split", "Concat"}) {
    LayerFixture it("type: '" + type + "'", test::make_backend(1));
    REQUIRE(it.build({{2, 3, 4}}, 1).has_value());
    REQUIRE(it.top(0).data() == it.bottom(0).data());
  }
}

TEST_CASE("a fully ignored batch has loss and gradient zero") {
  LayerFixture it("type: 'SoftmaxWithLoss' loss_param { ignore_label: 1 }", test::make_backend(1));
  REQUIRE(it.build({{2, 3}, {2}}, 1).has_value());
  it.set_bottom(0, {1, 2, 3, 4, 5, 6});
  it.set_bottom(1, {1, 1});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.top_values(0)[0] == 0.0F);
  it.top(0).set_gradients(it.backend(), std::vector<float>{1});
  it.backward();
  REQUIRE(it.bottom(0).gradients(it.backend()) == std::vector<float>(6, 0.0F));
}

TEST_CASE("layers take another batch size after reshape()") {
  for (const std::string text :
       {"type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 }",
        "type: 'Pooling' pooling_param { kernel_size: 2 stride: 2 }", "type: 'LRN'",
        "type: 'InnerProduct' inner_product_param { num_output: 3 }", "type: 'ReLU'"}) {
    LayerFixture it(text, test::make_backend(2));
    REQUIRE(it.build({{2, 3, 6, 6}}, 1).has_value());
    it.set_bottom(0, std::vector<float>(2 * 3 * 36, 0.5F));
    REQUIRE(it.forward().has_value());
    REQUIRE(it.reshape({{7, 3, 6, 6}}).has_value());
    it.set_bottom(0, std::vector<float>(7 * 3 * 36, 0.5F));
    REQUIRE(it.forward().has_value());
    REQUIRE(it.top(0).shape()[0] == 7);
    const auto values = it.top_values(0);
    const std::size_t row = values.size() / 7;
    REQUIRE(std::equal(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(row),
                       values.end() - static_cast<std::ptrdiff_t>(row)));
  }
}

}  // namespace
}  // namespace speedo
