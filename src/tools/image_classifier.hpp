#pragma once

#include <memory>
#include <string>
#include <vector>

#include <speedo/core/net.hpp>

namespace speedo {

// How pixels become the net's input: (pixel - mean of its channel) x scale.
struct ImagePreparation {
  std::vector<float> mean;  // one for all channels, one for each, or none
  float scale = 1.0F;
};

// What `text` says of the mean: the name of a mean.binaryproto, of which each channel's mean
// counts; numbers with commas between them; or "none". Errors: those of read_mean().
Result<std::vector<float>> read_channel_means(const std::string& text);

// Answers of a deploy net for single images, as Caffe's cpp_classification prepares them: in the
// channels that the net wants (blue first), stretched to its size.
class ImageClassifier {
 public:
  // Takes a net with one Input of 1 or 3 channels and one output; its batch becomes 1. `net`
  // outlives it. Errors: kConfig for other nets, or another number of means.
  static Result<std::unique_ptr<ImageClassifier>> create(Net& net, ImagePreparation preparation);

  std::int64_t classes() const { return classes_; }
  // The net's output. Errors: kData naming the file; kNotFinite.
  Result<std::vector<float>> classify(const std::string& image);

 private:
  ImageClassifier(Net& net, ImagePreparation preparation)
      : net_(net), preparation_(std::move(preparation)) {}
  Result<void> set_up();

  Net& net_;
  ImagePreparation preparation_;
  std::string input_, output_;
  std::int64_t channels_ = 0, height_ = 0, width_ = 0, classes_ = 0;
};

// The places of the `count` highest values, the highest first; of equal ones the first first.
std::vector<std::size_t> highest_places(const std::vector<float>& values, std::size_t count);

}  // namespace speedo
