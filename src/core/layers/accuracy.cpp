#include "core/layers/accuracy.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/backend/labels.hpp>

#include "caffe.pb.h"
#include "core/layers/bad_label.hpp"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> AccuracyLayer::reshape(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().accuracy_param();
  const Shape& scores = bottoms[0]->shape();
  const Shape& labels = bottoms[1]->shape();
  auto axis = scores.canonical_axis(options.axis());
  if (!axis) return error(axis.error().message);
  outer_ = scores.count(0, *axis);
  classes_ = scores[*axis];
  inner_ = scores.count(*axis + 1);
  if (labels.count() != outer_ * inner_) {
    return error(describe_label_count(scores, outer_ * inner_, labels.count()));
  }
  if (options.top_k() < 1 || options.top_k() > classes_) {
    return error(fmt::format("top_k is {}, it must be 1 to {}, the number of classes",
                             options.top_k(), classes_));
  }
  scores_.resize(static_cast<std::size_t>(scores.count()));
  labels_.resize(static_cast<std::size_t>(labels.count()));
  tops[0]->reshape({});
  if (tops.size() > 1) tops[1]->reshape({classes_});
  return {};
}

bool AccuracyLayer::is_hit(std::int64_t row, std::int64_t column, std::int64_t label) const {
  const float* score = scores_.data() + row * classes_ * inner_ + column;
  const float truth = score[label * inner_];
  const std::int64_t allowed = parameter_message().accuracy_param().top_k();
  std::int64_t as_good = 0;  // The true class itself is among them, unless it is NaN.
  for (std::int64_t k = 0; k < classes_ && as_good <= allowed; ++k) {
    as_good += score[k * inner_] >= truth ? 1 : 0;
  }
  return as_good <= allowed && as_good > 0;
}

Result<void> AccuracyLayer::forward(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().accuracy_param();
  backend().device().download(scores_, bottoms[0]->data());
  backend().device().download(labels_, bottoms[1]->data());
  class_hits_.assign(static_cast<std::size_t>(classes_), 0.0F);
  class_counts_.assign(static_cast<std::size_t>(classes_), 0.0F);
  std::int64_t hits = 0, count = 0;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const float value = labels_[i];
    if (options.has_ignore_label() && is_ignored(value, options.ignore_label())) continue;
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t label = label_index(value, classes_);
    if (label < 0) return error(describe_bad_label(value, index, classes_), ErrorCode::kData);
    const bool hit = is_hit(index / inner_, index % inner_, label);
    class_hits_[static_cast<std::size_t>(label)] += hit ? 1.0F : 0.0F;
    class_counts_[static_cast<std::size_t>(label)] += 1.0F;
    hits += hit ? 1 : 0;
    count += 1;
  }
  const float accuracy = count == 0 ? 0.0F : static_cast<float>(hits) / static_cast<float>(count);
  put_value(backend(), accuracy, tops[0]->data());
  if (tops.size() > 1) {
    for (std::size_t k = 0; k < class_hits_.size(); ++k) {
      if (class_counts_[k] > 0.0F) class_hits_[k] /= class_counts_[k];
    }
    backend().device().upload(tops[1]->data(), class_hits_);
  }
  return {};
}

}  // namespace speedo
