#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/phase.hpp>
#include <speedo/data/data_source.hpp>

namespace caffe {
class TransformationParameter;
}

namespace speedo {

struct ImageDims {
  std::int64_t channels = 0, height = 0, width = 0;
  bool operator==(const ImageDims&) const = default;
};

// Caffe's data transformation: value = (pixel - mean) * scale over a crop, perhaps mirrored. The
// crop is at random while training and in the middle while testing; mirroring is by the toss of a
// coin. Thread safety: apply() may be called from several threads at once.
class Transformer {
 public:
  // Reads the mean file, if one is named (from the working directory, then from `base`).
  // Errors: kConfig for contradictory fields; kNotFound, kData for the mean file.
  static Result<Transformer> create(const caffe::TransformationParameter& parameter, Phase phase,
                                    const std::filesystem::path& base);

  // Whether all that it makes has one height and width: it crops, or takes no others than the mean
  // image's.
  bool makes_one_size() const { return crop_ > 0 || !mean_image_.empty(); }
  // What records of these dims become. Error: kConfig if the crop or the means do not fit them.
  Result<ImageDims> output_dims(const ImageDims& record) const;

  // Requires: output_dims() of the record succeeded and counts target.size() values.
  void apply(const Record& record, Random& random, std::span<float> target) const;

 private:
  struct Window {
    std::int64_t top = 0, left = 0;
    ImageDims dims;
    bool mirror = false;
  };
  Transformer() = default;
  Window choose_window(const Record& record, Random& random) const;
  template <class Value>
  void transform(const Record& record, const Value* values, const Window& window,
                 float* target) const;

  Phase phase_ = Phase::kTrain;
  float scale_ = 1.0F;
  bool mirror_ = false;
  std::int64_t crop_ = 0;
  std::vector<float> mean_values_;  // none, one, or one a channel
  std::vector<float> mean_image_;   // none, or one a pixel of mean_dims_
  ImageDims mean_dims_;
};

}  // namespace speedo
