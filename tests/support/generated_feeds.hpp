#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/core/batch_feed.hpp>

#include "caffe.pb.h"

namespace speedo::test {

// Data without files: record r of the endless stream is kRecords points on a noisy pattern of its
// class, always the same for the same r. Understands data_param.batch_size.
class GeneratedFeed : public BatchFeed {
 public:
  static constexpr std::int64_t kFeatures = 16;
  static constexpr std::uint64_t kClasses = 4;
  static constexpr std::uint64_t kRecords = 512;

  // `tops`: values alone, or labels too.
  GeneratedFeed(std::int64_t batch, double start_fraction, std::size_t tops = 2)
      : shapes_{Shape{batch, 1, 4, 4}, Shape{batch}},
        first_(static_cast<std::uint64_t>(start_fraction * kRecords)),
        values_(static_cast<std::size_t>(batch * kFeatures)),
        labels_(static_cast<std::size_t>(batch)) {
    shapes_.resize(tops);
  }

  const std::vector<Shape>& shapes() const override { return shapes_; }
  std::uint64_t record_count() const override { return kRecords; }
  void will_need(std::uint64_t) override {}

  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::uint64_t record = (first_ + batch * labels_.size() + i) % kRecords;
      Random random = Random::derive(7, {record});
      const std::uint64_t label = random.below(kClasses);
      labels_[i] = static_cast<float>(label);
      for (std::size_t k = 0; k < kFeatures; ++k) {
        const float pattern = k % kClasses == label ? 1.0F : 0.0F;
        values_[i * kFeatures + k] = pattern + random.gaussian(0.0F, 0.5F);
      }
    }
    std::vector<std::span<const float>> read{values_, labels_};
    read.resize(shapes_.size());
    return read;
  }

 private:
  std::vector<Shape> shapes_;
  std::uint64_t first_;
  std::vector<float> values_, labels_;
};

class GeneratedFeeds : public FeedFactory {
 public:
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions& options) override {
    const std::int64_t batch = layer.data_param().batch_size();
    const std::size_t tops = options.top_count == 1 ? 1 : 2;
    return std::unique_ptr<BatchFeed>(new GeneratedFeed(batch, options.start_fraction, tops));
  }
};

// A solver with a small net on such data. `extra`: more solver fields.
inline std::string generated_solver(int batch, const std::string& extra, bool dropout) {
  std::string drop;
  if (dropout) {
    drop = R"(layer { name: "drop" type: "Dropout" bottom: "ip1" top: "ip1"
                      dropout_param { dropout_ratio: 0.3 } })";
  }
  const std::string data = R"(layer { name: "data" type: "Data" top: "data" top: "label"
      data_param { source: "generated" batch_size: )" + std::to_string(batch) + " } }";
  return extra + "\nnet_param { name: \"generated\" " + data + R"(
      layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
              param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
              inner_product_param { num_output: 24 weight_filler { type: "xavier" } } }
      layer { name: "relu" type: "ReLU" bottom: "ip1" top: "ip1" })" + drop + R"(
      layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
              inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 0.1 } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
      layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
              include { phase: TEST } } }
  )";
}

}  // namespace speedo::test
