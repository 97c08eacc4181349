#include "core/layers/loss_layer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/layers/bad_label.hpp"

namespace speedo {

Result<std::int64_t> LossLayer::reshape_items(Tensors bottoms, Tensors tops) {
  const Shape& first = bottoms[0]->shape();
  const Shape& second = bottoms[1]->shape();
  if (first.axes() < 1 || second.axes() < 1 || first[0] != second[0]) {
    return error(
        fmt::format("its first two bottoms must have the same first axis, they are {} "
                    "and {}",
                    to_string(first), to_string(second)));
  }
  tops[0]->reshape({});
  return first[0];
}

Result<void> LossLayer::check_some(Tensors bottoms) const {
  if (bottoms[0]->count() > 0) return {};
  return error(fmt::format("bottom {} is empty", to_string(bottoms[0]->shape())));
}

Result<void> LossLayer::check_label_count(Tensors bottoms, std::int64_t items) const {
  if (bottoms[1]->count() == items) return {};
  return error(describe_label_count(bottoms[0]->shape(), items, bottoms[1]->count()));
}

std::optional<double> fixed_normalizer(const caffe::LossParameter& options,
                                       DefaultNormalization otherwise, const LossCounts& counts) {
  auto mode = options.normalization();
  if (!options.has_normalization()) {
    mode = otherwise == DefaultNormalization::kValid ? caffe::LossParameter::VALID
                                                     : caffe::LossParameter::BATCH_SIZE;
    if (options.has_normalize()) {
      mode = options.normalize() ? caffe::LossParameter::VALID : caffe::LossParameter::BATCH_SIZE;
    }
  }
  if (mode == caffe::LossParameter::VALID) return std::nullopt;
  std::int64_t count = 1;
  if (mode == caffe::LossParameter::FULL) count = counts.outer * counts.inner;
  if (mode == caffe::LossParameter::BATCH_SIZE) count = counts.outer;
  return static_cast<double>(std::max<std::int64_t>(1, count));
}

double loss_normalizer(const caffe::LossParameter& options, DefaultNormalization otherwise,
                       const LossCounts& counts) {
  return fixed_normalizer(options, otherwise, counts)
      .value_or(static_cast<double>(std::max<std::int64_t>(1, counts.valid)));
}

std::optional<int> ignored_label(const caffe::LossParameter& options) {
  return options.has_ignore_label() ? std::optional<int>(options.ignore_label()) : std::nullopt;
}

}  // namespace speedo
