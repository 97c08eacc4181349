// Losses: values, normalizers and weights that Caffe defines.

#include <algorithm>
#include <cmath>
#include <limits>

#include <google/protobuf/text_format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

#include "core/blob_proto.hpp"
#include "core/weight_file.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

float loss_of(LayerFixture& it) {
  const auto done = it.forward();
  INFO((done ? std::string() : done.error().message));
  REQUIRE(done.has_value());
  return it.top_values(0)[0];
}

std::vector<float> gradient_of(LayerFixture& it, std::size_t bottom, float weight = 1.0F) {
  it.top(0).set_gradients(it.backend(), std::vector<float>{weight});
  it.backward();
  return it.bottom(bottom).gradients(it.backend());
}

TEST_CASE("what a loss of sigmoids is divided by") {
  struct Case {
    const char* options;
    float divisor;
  };
  const Case one = GENERATE(values<Case>({
      {"", 2.0F},
      {"normalize: true", 5.0F},
      {"normalize: false", 2.0F},
      {"normalization: FULL", 6.0F},
      {"normalization: VALID", 5.0F},
      {"normalization: BATCH_SIZE", 2.0F},
      {"normalization: NONE", 1.0F},
      {"normalize: true normalization: NONE", 1.0F},
  }));
  CAPTURE(one.options);
  LayerFixture it("type: 'SigmoidCrossEntropyLoss' loss_param { ignore_label: -1 " +
                      std::string(one.options) + " }",
                  test::make_backend(1));
  REQUIRE(it.build({{2, 3}, {2, 3}}, 1).has_value());
  it.set_bottom(0, {0, 0, 0, 0, 0, 0});
  it.set_bottom(1, {1, 0, 0.5F, -1, 1, 0});
  CHECK(loss_of(it) == Approx(5.0 * std::log(2.0) / double{one.divisor}));
  const auto gradient = gradient_of(it, 0, 4.0F);
  const float half = 2.0F / one.divisor;
  CHECK(gradient == std::vector<float>{-half, half, 0, 0, -half, half});
}

TEST_CASE("losses of which every label is ignored are 0") {
  LayerFixture sigmoid(
      "type: 'SigmoidCrossEntropyLoss' loss_param { ignore_label: 3 normalization: VALID }",
      test::make_backend(1));
  REQUIRE(sigmoid.build({{2, 2}, {2, 2}}, 1).has_value());
  sigmoid.set_bottom(0, {5, -5, 1, 2});
  sigmoid.set_bottom(1, {3, 3, 3, 3});
  CHECK(loss_of(sigmoid) == 0.0F);
  CHECK(gradient_of(sigmoid, 0) == std::vector<float>(4, 0.0F));
  LayerFixture infogain("type: 'InfogainLoss' loss_param { ignore_label: 3 }",
                        test::make_backend(1));
  REQUIRE(infogain.build({{2, 2}, {2}, {2, 2}}, 1).has_value());
  infogain.set_bottom(0, {5, -5, 1, 2});
  infogain.set_bottom(1, {3, 3});
  infogain.set_bottom(2, {1, 2, 3, 4});
  CHECK(loss_of(infogain) == 0.0F);
  CHECK(gradient_of(infogain, 0) == std::vector<float>(4, 0.0F));
}

// As behind a Filter that passes nothing on.
TEST_CASE("losses of no items that are divided by 1 at least are 0") {
  LayerFixture sigmoid("type: 'SigmoidCrossEntropyLoss'", test::make_backend(1));
  REQUIRE(sigmoid.build({{0, 2}, {0, 2}}, 1).has_value());
  CHECK(loss_of(sigmoid) == 0.0F);
  CHECK(gradient_of(sigmoid, 0).empty());
  LayerFixture infogain("type: 'InfogainLoss'", test::make_backend(1));
  REQUIRE(infogain.build({{0, 2}, {0}, {2, 2}}, 1).has_value());
  CHECK(loss_of(infogain) == 0.0F);
  CHECK(gradient_of(infogain, 0).empty());
}

TEST_CASE("hinge losses, also where a margin begins") {
  const bool squares = GENERATE(false, true);
  LayerFixture it(
      "type: 'HingeLoss' hinge_loss_param { norm: " + std::string(squares ? "L2" : "L1") + " }",
      test::make_backend(1));
  REQUIRE(it.build({{2, 3}, {2, 1, 1, 1}}, 1).has_value());
  it.set_bottom(0, {2, -1, 0.5F, 1, -2, 0});
  it.set_bottom(1, {1, 0});
  // Margins: 3, 2, 1.5 and 0, 0, 1.
  CHECK(loss_of(it) == (squares ? 8.125F : 3.75F));
  const auto expected = squares ? std::vector<float>{3, -2, 1.5F, 0, 0, 1}
                                : std::vector<float>{0.5F, -0.5F, 0.5F, 0, 0, 0.5F};
  CHECK(gradient_of(it, 0) == expected);
}

TEST_CASE("a probability below 1e-20 counts as that") {
  LayerFixture it("type: 'MultinomialLogisticLoss'", test::make_backend(1));
  REQUIRE(it.build({{2, 2}, {2}}, 1).has_value());
  it.set_bottom(0, {0.0F, 1.0F, 0.25F, 0.75F});
  it.set_bottom(1, {0, 1});
  CHECK(loss_of(it) == Approx((20.0 * std::log(10.0) - std::log(0.75)) / 2.0));
  const auto gradient = gradient_of(it, 0, 2.0F);
  CHECK(gradient[0] == Approx(-1e20));
  CHECK(gradient[1] == 0.0F);
  CHECK(gradient[3] == Approx(-1.0 / 0.75));
}

TEST_CASE("contrastive losses of similar, near and far pairs, of both versions") {
  const bool legacy = GENERATE(false, true);
  LayerFixture it("type: 'ContrastiveLoss' contrastive_loss_param { margin: 2 legacy_version: " +
                      std::string(legacy ? "true" : "false") + " }",
                  test::make_backend(1));
  REQUIRE(it.build({{4, 2}, {4, 2}, {4, 1, 1, 1}}, 1).has_value());
  it.set_bottom(0, {3, 4, 0, 1, 5, 5, 1, 1});
  it.set_bottom(1, {0, 0, 0, 0, 0, 0, 1, 1});
  it.set_bottom(2, {1, 0, 0, 0.9F});  // cut to a whole number, the last one is 0
  // Distances 5 (similar), 1, far and 0.
  CHECK(loss_of(it) == Approx(legacy ? (25.0 + 1.0 + 2.0) / 8.0 : (25.0 + 1.0 + 4.0) / 8.0));
  const auto first = gradient_of(it, 0, 4.0F), second = it.bottom(1).gradients(it.backend());
  CHECK(first[0] == Approx(3.0));
  CHECK(first[1] == Approx(4.0));
  CHECK(first[3] == Approx(legacy ? -1.0 : -1.0 / 1.0001));
  CHECK(std::vector<float>(first.begin() + 4, first.end()) == std::vector<float>(4, 0.0F));
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(second[i] == -first[i]);
  it.set_bottom(0, {3, 4, std::numeric_limits<float>::quiet_NaN(), 1, 5, 5, 1, 1});
  CHECK(std::isnan(loss_of(it)));
}

TEST_CASE("a net finds the matrix of an infogain loss beside its prototxt") {
  const TempDir folder;
  caffe::BlobProto blob;
  std::ranges::fill(set_shape_and_data({2, 2}, blob), 1.0F);
  REQUIRE(write_blob_file(folder / "infogain_H", blob).has_value());
  caffe::NetParameter message;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(
      "layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param { shape { dim: 3 dim: 2 } "
      "shape { dim: 3 } } } layer { name: 'loss' type: 'InfogainLoss' bottom: 'x' bottom: 'y' "
      "infogain_loss_param { source: 'infogain_H' } }",
      &message));
  const auto backend = test::make_backend(1);
  NetOptions options;
  options.backend = backend.get();
  options.base = folder.path();
  const auto net = Net::create(message, options);
  INFO((net ? std::string() : net.error().message));
  REQUIRE(net.has_value());
  const auto loss = (*net)->forward();
  REQUIRE(loss.has_value());
  CHECK(*loss == Approx(2.0 * std::log(2.0)));
  options.base = "/";
  CHECK(Net::create(message, options).error().code == ErrorCode::kNotFound);
}

TEST_CASE("the matrix of an infogain loss comes from a file") {
  const TempDir folder;
  const auto write = [&](const Shape& shape, const std::vector<float>& values) {
    caffe::BlobProto blob;
    const auto target = set_shape_and_data(shape, blob);
    std::copy(values.begin(), values.end(), target.begin());
    REQUIRE(write_blob_file(folder / "H", blob).has_value());
  };
  const std::string text =
      "type: 'InfogainLoss' infogain_loss_param { source: '" + (folder / "H").string() + "' }";
  write({1, 1, 2, 2}, {1, 0, 0.5F, 2});
  LayerFixture it(text, test::make_backend(1));
  REQUIRE(it.build({{2, 2}, {2}}, 2).has_value());
  it.set_bottom(0, {0, 0, 0, 0});
  it.set_bottom(1, {0, 1});
  CHECK(loss_of(it) == Approx((1.0 + 2.5) * std::log(2.0) / 2.0));
  CHECK(it.top_values(1) == std::vector<float>(4, 0.5F));
  CHECK(gradient_of(it, 0, 2.0F) == std::vector<float>{-0.5F, 0.5F, 0.75F, -0.75F});
  it.set_bottom(1, {0, 2});
  CHECK(it.forward().error().message.find("label 2 at index 1 is outside 0..1") !=
        std::string::npos);

  const auto refused = [&] {
    LayerFixture wrong(text, test::make_backend(1));
    const auto built = wrong.build({{2, 2}, {2}}, 1);
    REQUIRE_FALSE(built.has_value());
    return built.error();
  };
  write({3, 3}, std::vector<float>(9, 1.0F));
  CHECK(refused().message.find("needs 2 x 2 elements for 2 classes, it has 9") !=
        std::string::npos);
  // A shape that claims more than there is takes no memory for it.
  caffe::BlobProto claims;
  claims.mutable_shape()->add_dim(2147483647);
  claims.add_data(1.0F);
  REQUIRE(write_blob_file(folder / "H", claims).has_value());
  CHECK(refused().message.find("its shape is 2147483647 (2147483647), but it holds 1 values") !=
        std::string::npos);
  std::filesystem::remove(folder / "H");
  CHECK(refused().code == ErrorCode::kNotFound);
  CHECK(refused().message.find("layer 'it' (InfogainLoss): matrix") == 0);
}

}  // namespace
}  // namespace speedo
