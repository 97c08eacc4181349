#include "core/layers/arg_max.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<void> ArgMaxLayer::reshape(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().argmax_param();
  const Shape& bottom = bottoms[0]->shape();
  has_axis_ = options.has_axis();
  gives_values_ = options.out_max_val();
  top_k_ = options.top_k();
  // Without an axis: all that an item of the first axis has.
  const auto axis = bottom.canonical_axis(has_axis_ ? options.axis() : 0);
  if (!axis) return error(axis.error().message);
  outer_ = has_axis_ ? bottom.count(0, *axis) : bottom[0];
  places_ = has_axis_ ? bottom[*axis] : bottom.count(1);
  inner_ = has_axis_ ? bottom.count(*axis + 1) : 1;
  if (top_k_ < 1 || top_k_ > places_) {
    return error(
        fmt::format("top_k is {}, it must be 1 to {}, the number of values to choose from "
                    "(bottom {})",
                    top_k_, places_, to_string(bottom)));
  }
  std::vector<std::int64_t> dims = bottom.dims();
  if (has_axis_) {
    dims[static_cast<std::size_t>(*axis)] = top_k_;
  } else {
    dims.assign(std::max<std::size_t>(3, dims.size()), 1);
    dims[0] = outer_;
    dims[1] = gives_values_ ? 2 : 1;
    dims[2] = top_k_;
  }
  auto top = Shape::create(std::move(dims));
  if (!top) return error(top.error().message);
  tops[0]->reshape(*top);
  return {};
}

// A NaN is less than every number, so that there is an order.
bool ArgMaxLayer::precedes(const Candidate& a, const Candidate& b) {
  const bool a_is_number = !std::isnan(a.value), b_is_number = !std::isnan(b.value);
  if (a_is_number != b_is_number) return a_is_number;
  if (a_is_number && a.value != b.value) return a.value > b.value;
  return a.place > b.place;
}

void ArgMaxLayer::write(std::int64_t row, std::int64_t column, std::int64_t rank,
                        const Candidate& one) {
  const auto place = static_cast<float>(one.place);
  if (has_axis_ || !gives_values_) {
    const std::int64_t at = (row * top_k_ + rank) * inner_ + column;
    result_[static_cast<std::size_t>(at)] = gives_values_ ? one.value : place;
    return;
  }
  const auto at = static_cast<std::size_t>(2 * row * top_k_ + rank);
  result_[at] = place;
  result_[at + static_cast<std::size_t>(top_k_)] = one.value;
}

// Goes through memory in its order, with the best of each column so far.
void ArgMaxLayer::rank_first(const float* values) {
  candidates_.resize(static_cast<std::size_t>(inner_));
  for (std::int64_t row = 0; row < outer_; ++row) {
    for (std::int64_t k = 0; k < places_; ++k) {
      for (Candidate& best : candidates_) {
        const Candidate next{*values++, k};
        if (k == 0 || precedes(next, best)) best = next;
      }
    }
    for (std::int64_t i = 0; i < inner_; ++i) {
      write(row, i, 0, candidates_[static_cast<std::size_t>(i)]);
    }
  }
}

void ArgMaxLayer::rank(const float* values) {
  candidates_.resize(static_cast<std::size_t>(places_));
  for (std::int64_t column = 0; column < outer_ * inner_; ++column) {
    const std::int64_t row = column / inner_, i = column % inner_;
    for (std::int64_t k = 0; k < places_; ++k) {
      candidates_[static_cast<std::size_t>(k)] = {values[(row * places_ + k) * inner_ + i], k};
    }
    std::partial_sort(candidates_.begin(), candidates_.begin() + top_k_, candidates_.end(),
                      precedes);
    for (std::int64_t k = 0; k < top_k_; ++k) {
      write(row, i, k, candidates_[static_cast<std::size_t>(k)]);
    }
  }
}

Result<void> ArgMaxLayer::forward(Tensors bottoms, Tensors tops) {
  values_.resize(static_cast<std::size_t>(bottoms[0]->count()));
  result_.resize(static_cast<std::size_t>(tops[0]->count()));
  backend().device().download(values_, bottoms[0]->data());
  if (top_k_ == 1) {
    rank_first(values_.data());
  } else {
    rank(values_.data());
  }
  backend().device().upload(tops[0]->data(), result_);
  return {};
}

}  // namespace speedo
