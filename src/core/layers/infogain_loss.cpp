#include "core/layers/infogain_loss.hpp"

#include <algorithm>
#include <cfloat>

#include <fmt/format.h>

#include <speedo/backend/labels.hpp>

#include "base/read_found.hpp"
#include "caffe.pb.h"
#include "core/blob_proto.hpp"
#include "core/layers/bad_label.hpp"
#include "core/weight_file.hpp"

namespace speedo {

Result<void> InfogainLossLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  if (parameter_message().loss_param().has_normalize()) {
    return error("normalize is an old option that this loss does not take; use normalization");
  }
  if (bottoms.size() > 2) return {};
  if (!parameter_message().infogain_loss_param().has_source()) {
    return error("needs its matrix: the file infogain_loss_param { source }, or a third bottom");
  }
  return read_matrix();
}

Result<void> InfogainLossLayer::read_matrix() {
  const std::string& source = parameter_message().infogain_loss_param().source();
  const auto blob = read_found(source, context().feed_options.base, read_blob_file);
  if (!blob) return error("matrix: " + blob.error().message, blob.error().code);
  // Room for what is stored, and not for what a damaged shape claims.
  matrix_.resize(static_cast<std::size_t>(std::max(blob->data_size(), blob->double_data_size())));
  const auto read = read_values(*blob, matrix_);
  if (!read) return error(fmt::format("matrix {}: {}", source, read.error().message));
  const auto shape = shape_of(*blob);
  if (!shape) return error(fmt::format("matrix {}: {}", source, shape.error().message));
  if (shape->count() != static_cast<std::int64_t>(matrix_.size())) {
    return error(fmt::format("matrix {}: its shape is {}, but it holds {} values", source,
                             to_string(*shape), matrix_.size()));
  }
  return {};
}

Result<void> InfogainLossLayer::check_matrix(std::int64_t count) const {
  if (count == shape_.classes * shape_.classes) return {};
  return error(fmt::format("its matrix needs {0} x {0} elements for {0} classes, it has {1}",
                           shape_.classes, count));
}

Result<void> InfogainLossLayer::reshape(Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(
      reshape_classes(parameter_message().infogain_loss_param().axis(), bottoms, tops));
  logarithm_.reshape(bottoms[0]->shape());
  const bool has_bottom = bottoms.size() > 2;
  return check_matrix(has_bottom ? bottoms[2]->count() : static_cast<std::int64_t>(matrix_.size()));
}

Result<void> InfogainLossLayer::prepare(Tensors bottoms, Tensors tops, bool trains) {
  SPEEDO_TRY(ClassLossLayer::prepare(bottoms, tops, trains));
  return allocate(logarithm_);
}

template <class Visit>
Result<void> InfogainLossLayer::for_each_label(const Visit& visit) const {
  const auto ignored = ignored_label(parameter_message().loss_param());
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t start =
        index / shape_.inner * shape_.classes * shape_.inner + index % shape_.inner;
    if (is_ignored(labels_[i], ignored)) {
      visit(std::int64_t{-1}, start);
      continue;
    }
    const std::int64_t label = label_index(labels_[i], shape_.classes);
    if (label < 0) {
      return error(describe_bad_label(labels_[i], index, shape_.classes), ErrorCode::kData);
    }
    visit(label, start);
  }
  return {};
}

// Of the logarithms that values_ holds.
Result<double> InfogainLossLayer::sum_losses() {
  double sum = 0.0;
  valid_count_ = 0;
  SPEEDO_TRY(for_each_label([&](std::int64_t label, std::int64_t start) {
    if (label < 0) return;
    const float* const row = matrix_.data() + label * shape_.classes;
    const float* const logarithms = values_.data() + start;
    for (std::int64_t l = 0; l < shape_.classes; ++l) {
      sum -= static_cast<double>(row[l]) * static_cast<double>(logarithms[l * shape_.inner]);
    }
    valid_count_ += 1;
  }));
  return sum;
}

Result<void> InfogainLossLayer::forward(Tensors bottoms, Tensors tops) {
  constexpr UnaryOp kAtLeastLeast{UnaryKind::kClip, 1e-20F, FLT_MAX};  // Caffe's kLOG_THRESHOLD
  constexpr UnaryOp kLogarithm{UnaryKind::kLog, 1.0F, 0.0F, 1.0F};
  Device& device = backend().device();
  labels_.resize(static_cast<std::size_t>(bottoms[1]->count()));
  values_.resize(static_cast<std::size_t>(bottoms[0]->count()));
  if (bottoms.size() > 2) {
    matrix_.resize(static_cast<std::size_t>(bottoms[2]->count()));
    device.download(matrix_, bottoms[2]->data());
  }
  device.download(labels_, bottoms[1]->data());
  const std::int64_t count = logarithm_.count();
  backend().softmax_forward(shape_, bottoms[0]->data(), probability_.data());
  backend().map(kAtLeastLeast, count, probability_.data(), logarithm_.data());
  backend().map(kLogarithm, count, logarithm_.data(), logarithm_.data());
  device.download(values_, logarithm_.data());
  SPEEDO_ASSIGN(const double sum, sum_losses());
  put_value(backend(), static_cast<float>(sum / normalizer()), tops[0]->data());
  return {};
}

void InfogainLossLayer::backward(Tensors tops, const std::vector<bool>& propagate,
                                 Tensors bottoms) {
  if (!propagate[0]) return;
  const double weight = get_value(backend(), tops[0]->grad());
  const auto scale = static_cast<float>(weight / normalizer());
  backend().device().download(values_, probability_.data());
  std::vector<float> row_sums(static_cast<std::size_t>(shape_.classes));
  for (std::size_t i = 0; i < matrix_.size(); ++i) row_sums[i / row_sums.size()] += matrix_[i];
  const auto done = for_each_label([&](std::int64_t label, std::int64_t start) {
    for (std::int64_t l = 0; l < shape_.classes; ++l) {
      float& value = values_[static_cast<std::size_t>(start + l * shape_.inner)];
      if (label < 0) {
        value = 0.0F;
        continue;
      }
      const float wanted = matrix_[static_cast<std::size_t>(label * shape_.classes + l)];
      value = scale * (value * row_sums[static_cast<std::size_t>(label)] - wanted);
    }
  });
  done.ignore("forward() has seen the same labels");
  backend().device().upload(bottoms[0]->grad(), values_);
}

}  // namespace speedo
