#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

#include "net_run.hpp"
#include "net_support.hpp"

// Images of several sizes with a class for each pixel, and a net that segments them.
namespace speedo {

inline constexpr std::int64_t kChannels = 3;
inline constexpr std::uint64_t kClasses = 4;

struct ImageSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

// The sizes of batches 0, 1, ... , and round again.
using ImageSizes = std::vector<ImageSize>;

// Layer "data": images; layer "truth": a class for each of their pixels.
inline std::vector<float> values_of_batch(const std::string& layer, std::uint64_t batch,
                                          ImageSize size) {
  const bool is_truth = layer == "truth";
  Random random = Random::derive(is_truth ? 11 : 12, {batch});
  std::vector<float> values;
  for (std::int64_t i = 0; i < (is_truth ? 1 : kChannels) * size.height * size.width; ++i) {
    values.push_back(is_truth ? static_cast<float>(random.below(kClasses))
                              : random.gaussian(0.0F, 1.0F));
  }
  return values;
}

// What all feeds of a test have in common.
struct SizedImages {
  ImageSizes sizes;
  ImageSizes sizes_of_truth = {};                  // if others
  std::optional<std::uint64_t> broken_truth = {};  // a batch that cannot be read the first time
};

class ImagesOfSizes final : public BatchFeed {
 public:
  ImagesOfSizes(std::string layer, SizedImages& images)
      : layer_(std::move(layer)),
        images_(images),
        sizes_(is_truth() && !images.sizes_of_truth.empty() ? images.sizes_of_truth
                                                            : images.sizes),
        first_{shape_of(sizes_.front())} {}

  const std::vector<Shape>& shapes() const override { return first_; }
  bool shapes_vary() const override { return sizes_.size() > 1; }
  Result<std::vector<Shape>> shapes_of(std::uint64_t batch) override {
    if (is_truth() && images_.broken_truth == batch) {
      images_.broken_truth.reset();
      return Error{ErrorCode::kData, "the truth is torn"};
    }
    return std::vector<Shape>{shape_of(size_at(batch))};
  }
  std::uint64_t record_count() const override { return sizes_.size(); }
  void will_need(std::uint64_t) override {}
  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override {
    memory_ = values_of_batch(layer_, batch, size_at(batch));
    return std::vector<std::span<const float>>{memory_};
  }

 private:
  bool is_truth() const { return layer_ == "truth"; }
  ImageSize size_at(std::uint64_t batch) const { return sizes_[batch % sizes_.size()]; }
  Shape shape_of(ImageSize size) const {
    return Shape{1, is_truth() ? 1 : kChannels, size.height, size.width};
  }

  const std::string layer_;
  SizedImages& images_;
  const ImageSizes sizes_;
  const std::vector<Shape> first_;
  std::vector<float> memory_;
};

class ImagesOfSizesFactory final : public FeedFactory {
 public:
  explicit ImagesOfSizesFactory(SizedImages images) : images_(std::move(images)) {}
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions&) override {
    return std::unique_ptr<BatchFeed>(std::make_unique<ImagesOfSizes>(layer.name(), images_));
  }

 private:
  SizedImages images_;
};

inline std::string data_layer(const std::string& name) {
  return "layer { name: '" + name + "' type: 'Data' top: '" + name +
         "' data_param { source: 'x' batch_size: 1 } }\n";
}

// Scores for each pixel, as in a fully convolutional net: made smaller, made larger again, cut.
inline std::string segmentation_layers() {
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

inline std::string segmentation_net() {
  return data_layer("data") + data_layer("truth") + segmentation_layers();
}

inline std::string net_of_size(ImageSize size) {
  const std::string pixels =
      " dim: " + std::to_string(size.height) + " dim: " + std::to_string(size.width);
  return input("data", "dim: 1 dim: 3" + pixels) + input("truth", "dim: 1 dim: 1" + pixels) +
         segmentation_layers();
}

struct StepResult {
  float loss = 0.0F;
  std::vector<float> scores, gradients;
};

inline StepResult step(Net& net) {
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

inline void require_as_alone(Net& net, std::uint64_t batch, ImageSize size,
                             const NetOptions& options) {
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

inline NetOptions options_with(FeedFactory& feeds, Backend& backend) {
  NetOptions options = net_options();
  options.feeds = &feeds;
  options.backend = &backend;
  options.kept_blobs = {"cut"};
  return options;
}

inline ImageSizes draw_sizes(Random& random) {
  ImageSizes sizes;
  for (int i = 0; i < 5; ++i) {
    sizes.push_back({6 + static_cast<std::int64_t>(random.below(12)),
                     6 + static_cast<std::int64_t>(random.below(12))});
  }
  return sizes;
}

inline std::vector<float> truth_of(const Net& net) {
  return net.blob("truth")->values(net.backend());
}

// A layer that always brings one shape is as ever beside one that does not.
inline void require_steady_beside_varying(Backend& backend) {
  const ImageSize steady{8, 8};
  ImagesOfSizesFactory feeds({.sizes = {{8, 8}, {12, 7}, {7, 12}}, .sizes_of_truth = {steady}});
  const auto net = make_net(data_layer("data") + data_layer("truth") + conv("c1", "data", 3),
                            options_with(feeds, backend));
  for (std::uint64_t batch = 0; batch < 6; ++batch) {
    REQUIRE(net->forward().has_value());
    CHECK(truth_of(*net) == values_of_batch("truth", batch, steady));
  }
}

// A net on this backend goes through images of random sizes, round and round, and jumps back.
inline void require_each_as_alone(Backend& backend, Random& random) {
  const ImageSizes sizes = draw_sizes(random);
  ImagesOfSizesFactory feeds({sizes});
  const NetOptions options = options_with(feeds, backend);
  const auto net = make_net(segmentation_net(), options);
  for (std::uint64_t batch = 0; batch < 7; ++batch) {
    require_as_alone(*net, batch, sizes[batch % sizes.size()], options);
  }
  net->set_batch_span({.first = 3});
  require_as_alone(*net, 3, sizes[3], options);
}

}  // namespace speedo
