#include "data/image/transformer.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

#include "base/read_found.hpp"
#include "base/simd.hpp"
#include "caffe.pb.h"
#include "data/image/mean.hpp"

namespace speedo {

namespace {

SPEEDO_MULTIVERSION
void scale_bytes(std::int64_t n, const std::uint8_t* x, float mean, float scale, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - mean) * scale;
}

SPEEDO_MULTIVERSION
void scale_floats(std::int64_t n, const float* x, float mean, float scale, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale;
}

SPEEDO_MULTIVERSION
void center_bytes(std::int64_t n, const std::uint8_t* x, const float* mean, float scale, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - mean[i]) * scale;
}

SPEEDO_MULTIVERSION
void center_floats(std::int64_t n, const float* x, const float* mean, float scale, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean[i]) * scale;
}

// One name for both kinds of pixels.
void scale(std::int64_t n, const std::uint8_t* x, float mean, float scale, float* y) {
  scale_bytes(n, x, mean, scale, y);
}
void scale(std::int64_t n, const float* x, float mean, float scale, float* y) {
  scale_floats(n, x, mean, scale, y);
}
void center(std::int64_t n, const std::uint8_t* x, const float* mean, float scale, float* y) {
  center_bytes(n, x, mean, scale, y);
}
void center(std::int64_t n, const float* x, const float* mean, float scale, float* y) {
  center_floats(n, x, mean, scale, y);
}

Error bad_transform(std::string what) {
  return Error{ErrorCode::kConfig, "transform_param: " + std::move(what)};
}

}  // namespace

Result<Transformer> Transformer::create(const caffe::TransformationParameter& parameter,
                                        Phase phase, const std::filesystem::path& base) {
  if (parameter.has_mean_file() && parameter.mean_value_size() > 0) {
    return bad_transform("mean_file and mean_value exclude each other");
  }
  if (!std::isfinite(parameter.scale())) return bad_transform("scale is not a finite number");
  for (const float mean : parameter.mean_value()) {
    if (!std::isfinite(mean)) return bad_transform("a mean_value is not a finite number");
  }
  Transformer transformer;
  transformer.phase_ = phase;
  transformer.scale_ = parameter.scale();
  transformer.mirror_ = parameter.mirror();
  transformer.crop_ = parameter.crop_size();
  transformer.mean_values_.assign(parameter.mean_value().begin(), parameter.mean_value().end());
  if (parameter.has_mean_file()) {
    SPEEDO_ASSIGN(MeanImage mean, read_found(parameter.mean_file(), base, read_mean));
    transformer.mean_dims_ = mean.dims;
    transformer.mean_image_ = std::move(mean.values);
  }
  return transformer;
}

Result<ImageDims> Transformer::output_dims(const ImageDims& record) const {
  if (crop_ > record.height || crop_ > record.width) {
    return bad_transform(
        fmt::format("crop_size {} exceeds the image of {}x{}", crop_, record.height, record.width));
  }
  if (!mean_image_.empty() && mean_dims_ != record) {
    return bad_transform(
        fmt::format("the mean file is for images of {}x{}x{}, the data are "
                    "{}x{}x{}",
                    mean_dims_.channels, mean_dims_.height, mean_dims_.width, record.channels,
                    record.height, record.width));
  }
  const auto means = static_cast<std::int64_t>(mean_values_.size());
  if (means > 1 && means != record.channels) {
    return bad_transform(
        fmt::format("{} mean_values are given for {} channels; give one, or one a "
                    "channel",
                    means, record.channels));
  }
  if (crop_ == 0) return record;
  return ImageDims{record.channels, crop_, crop_};
}

Transformer::Window Transformer::choose_window(const Record& record, Random& random) const {
  Window window;
  window.dims = {record.channels, record.height, record.width};
  window.mirror = mirror_ && random.below(2) == 1;
  if (crop_ == 0) return window;
  window.dims.height = window.dims.width = crop_;
  const std::int64_t down = record.height - crop_, right = record.width - crop_;
  SPEEDO_ASSERT(down >= 0);
  SPEEDO_ASSERT(right >= 0);
  if (phase_ == Phase::kTrain) {
    window.top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(down) + 1));
    window.left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(right) + 1));
  } else {
    window.top = down / 2;
    window.left = right / 2;
  }
  return window;
}

template <class Value>
void Transformer::transform(const Record& record, const Value* values, const Window& window,
                            float* target) const {
  // Whole planes are one run of memory when nothing is cut off or turned round.
  const bool whole =
      window.dims.width == record.width && window.dims.height == record.height && !window.mirror;
  const std::int64_t rows = whole ? 1 : window.dims.height;
  const std::int64_t length = whole ? record.height * record.width : window.dims.width;
  for (std::int64_t c = 0; c < window.dims.channels; ++c) {
    const float mean =
        mean_values_.empty()
            ? 0.0F
            : mean_values_[mean_values_.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    for (std::int64_t row = 0; row < rows; ++row, target += length) {
      const std::int64_t from = (c * record.height + window.top + row) * record.width + window.left;
      if (mean_image_.empty()) {
        scale(length, values + from, mean, scale_, target);
      } else {
        center(length, values + from, mean_image_.data() + from, scale_, target);
      }
      if (window.mirror) std::reverse(target, target + length);
    }
  }
}

void Transformer::apply(const Record& record, Random& random, std::span<float> target) const {
  const Window window = choose_window(record, random);
  SPEEDO_ASSERT(static_cast<std::int64_t>(target.size()) ==
                window.dims.channels * window.dims.height * window.dims.width);
  if (!record.bytes.empty()) {
    transform(record, record.bytes.data(), window, target.data());
  } else {
    transform(record, record.floats.data(), window, target.data());
  }
}

}  // namespace speedo
