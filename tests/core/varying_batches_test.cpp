// Data layers whose batches have several shapes: each pass computes what a net made for that shape
// alone computes with the same weights.

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/core/update_rule.hpp>

#include "net_run.hpp"
#include "net_support.hpp"
#include "support/deferred_backend.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kChannels = 3;
constexpr std::uint64_t kClasses = 4;

struct ImageSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// The sizes of batches 0, 1, ... , and round again.
using ImageSizes = std::vector<ImageSize>;

// Layer "data": images; layer "truth": a class for each of their pixels.
std::vector<float> values_of_batch(const std::string& layer, std::uint64_t batch, ImageSize size) {
  const bool is_truth = layer == "truth";
  Random random = Random::derive(is_truth ? 11 : 12, {batch});
  std::vector<float> values;
  for (std::int64_t i = 0; i < (is_truth ? 1 : kChannels) * size.height * size.width; ++i) {
    values.push_back(is_truth ? static_cast<float>(random.below(kClasses))
                              : random.gaussian(0.0F, 1.0F));
  }
  return values;
}

class ImagesOfSizes final : public BatchFeed {
 public:
  ImagesOfSizes(std::string layer, const ImageSizes& sizes)
      : layer_(std::move(layer)), sizes_(sizes), first_{shape_of(sizes_.front())} {}

  const std::vector<Shape>& shapes() const override { return first_; }
  bool shapes_vary() const override { return true; }
  Result<std::vector<Shape>> shapes_of(std::uint64_t batch) override {
    return std::vector<Shape>{shape_of(size_at(batch))};
  }
  std::uint64_t record_count() const override { return sizes_.size(); }
  void will_need(std::uint64_t) override {}
  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override {
    memory_ = values_of_batch(layer_, batch, size_at(batch));
    return std::vector<std::span<const float>>{memory_};
  }

 private:
  ImageSize size_at(std::uint64_t batch) const { return sizes_[batch % sizes_.size()]; }
  Shape shape_of(ImageSize size) const {
    return Shape{1, layer_ == "truth" ? 1 : kChannels, size.height, size.width};
  }

  const std::string layer_;
  const ImageSizes sizes_;
  const std::vector<Shape> first_;
  std::vector<float> memory_;
};

class ImagesOfSizesFactory final : public FeedFactory {
 public:
  explicit ImagesOfSizesFactory(ImageSizes sizes) : sizes_(std::move(sizes)) {}
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions&) override {
    return std::unique_ptr<BatchFeed>(std::make_unique<ImagesOfSizes>(layer.name(), sizes_));
  }

 private:
  const ImageSizes sizes_;
};

std::string data_layer(const std::string& name) {
  return "layer { name: '" + name + "' type: 'Data' top: '" + name +
         "' data_param { source: 'x' batch_size: 1 } }\n";
}

// Scores for each pixel, as in a fully convolutional net: made smaller, made larger again, cut.
std::string segmentation_layers() {
  return conv("c1", "data", 8) + in_place("ReLU", "c1") +
         layer("pool", "Pooling", {"c1"}, "pooling_param { kernel_size: 2 stride: 2 }") +
         layer("norm", "LRN", {"pool"}) + conv("c2", "norm", 16) + in_place("ReLU", "c2") +
         conv("c3", "c2", static_cast<int>(kClasses), 1) +
         layer("up", "Deconvolution", {"c3"},
               "convolution_param { num_output: 4 kernel_size: 6 stride: 2 "
               "weight_filler { type: 'xavier' } }") +
         layer("cut", "Crop", {"up", "data"}, "crop_param { axis: 2 offset: 1 }") +
         layer("loss", "SoftmaxWithLoss", {"cut", "truth"}) +
         layer("accuracy", "Accuracy", {"cut", "truth"});
}

std::string segmentation_net() {
  return data_layer("data") + data_layer("truth") + segmentation_layers();
}

std::string net_of_size(ImageSize size) {
  const std::string pixels =
      " dim: " + std::to_string(size.height) + " dim: " + std::to_string(size.width);
  return input("data", "dim: 1 dim: 3" + pixels) + input("truth", "dim: 1 dim: 1" + pixels) +
         segmentation_layers();
}

struct StepResult {
  float loss = 0.0F;
  std::vector<float> scores, gradients;
};

StepResult step(Net& net) {
  net.clear_gradients();
  const auto passed = net.forward();
  INFO((passed ? std::string() : passed.error().message));
  REQUIRE(passed.has_value());
  net.backward();
  StepResult result{*passed, net.blob("cut")->values(net.backend()), {}};
  result.gradients.resize(static_cast<std::size_t>(net.gradients().size()));
  net.backend().device().download(result.gradients, net.gradients().data());
  return result;
}

void require_as_alone(Net& net, std::uint64_t batch, ImageSize size, const NetOptions& options) {
  CAPTURE(batch, size.height, size.width);
  const StepResult varied = step(net);
  const auto alone = make_net(net_of_size(size), options);
  std::vector<float> weights(static_cast<std::size_t>(net.weights().size()));
  net.backend().device().download(weights, net.weights().data());
  alone->backend().device().upload(alone->weights().data(), weights);
  for (const std::string name : {"data", "truth"}) {
    alone->blob(name)->set_values(alone->backend(), values_of_batch(name, batch, size));
  }
  const StepResult expected = step(*alone);
  CHECK(varied.loss == Approx(expected.loss).epsilon(1e-5));
  CHECK(varied.scores.size() == kClasses * static_cast<std::size_t>(size.height * size.width));
  check_close("scores", varied.scores, expected.scores);
  check_close("gradients", varied.gradients, expected.gradients);
}

NetOptions options_with(FeedFactory& feeds, Backend& backend) {
  NetOptions options = net_options();
  options.feeds = &feeds;
  options.backend = &backend;
  options.kept_blobs = {"cut"};
  return options;
}

TEST_CASE("images of several sizes are computed as each alone") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  Random random(seed);
  ImageSizes sizes;
  for (int i = 0; i < 5; ++i) {
    sizes.push_back({6 + static_cast<std::int64_t>(random.below(12)),
                     6 + static_cast<std::int64_t>(random.below(12))});
  }
  ImagesOfSizesFactory feeds(sizes);
  const auto deferred =
      make_deferred_backend(make_reference_backend(), DeferredOrder::kComputeFirst);
  for (Backend* const backend : {&test_backend(), deferred.get()}) {
    const NetOptions options = options_with(feeds, *backend);
    const auto net = make_net(segmentation_net(), options);
    for (std::uint64_t batch = 0; batch < 7; ++batch) {
      require_as_alone(*net, batch, sizes[batch % sizes.size()], options);
    }
    net->set_batch_span({.first = 3});
    require_as_alone(*net, 3, sizes[3], options);
  }
}

TEST_CASE("a net made to test goes its own way through images of several sizes") {
  const ImageSizes sizes{{8, 8}, {12, 7}, {9, 16}};
  ImagesOfSizesFactory feeds(sizes);
  NetOptions options = options_with(feeds, test_backend());
  const auto trained = make_net(segmentation_net(), options);
  options.share_parameters = trained.get();
  options.trains = false;
  const auto tested = make_net(segmentation_net(), options);
  std::vector<float> losses;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    losses.push_back(tested->forward().value());
    CHECK(tested->blob("cut")->shape() == Shape{1, 4, sizes[i].height, sizes[i].width});
  }
  for (const float loss : losses) CHECK(step(*trained).loss == Approx(loss).epsilon(1e-5));
}

TEST_CASE("a size that the net cannot take is an error of that pass, and of no other") {
  ImagesOfSizesFactory feeds({{8, 8}, {12, 7}, {8, 8}});
  NetOptions options = options_with(feeds, test_backend());
  const auto net = make_net(data_layer("data") + product("ip", "data"), options);
  REQUIRE(net->forward().has_value());
  net->set_batch_span({.first = 1});
  const auto refused = net->forward();
  REQUIRE_FALSE(refused.has_value());
  INFO(refused.error().message);
  CHECK(refused.error().message.find("layer 'ip'") != std::string::npos);
  CHECK(refused.error().message.find("1 3 12 7") != std::string::npos);
  net->set_batch_span({.first = 2});
  CHECK(net->forward().has_value());
}

TEST_CASE("where images have several sizes, nothing relies on one of them") {
  ImagesOfSizesFactory feeds({{8, 8}});
  const auto net = make_net(data_layer("data") + data_layer("truth") + product("ip", "data", "", 600),
                            options_with(feeds, test_backend()));
  CHECK(net->factor_shapes().empty());
  CHECK(net->recording_obstacle().find("'data'") != std::string::npos);
}

}  // namespace
}  // namespace speedo
