#include "core/layers/im2col.hpp"

#include <utility>

#include <fmt/format.h>

#include "caffe.pb.h"
#include "core/layers/window_options.hpp"

namespace speedo {

Result<void> Im2colLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().convolution_param();
  const Shape& bottom = bottoms[0]->shape();
  const auto axis = bottom.canonical_axis(options.axis());
  if (!axis) return error(axis.error().message);
  axis_ = *axis;
  if (axis_ + 1 == bottom.axes()) {
    return error(fmt::format("needs a spatial axis behind axis {}, its bottom is {}", axis_,
                             to_string(bottom)));
  }
  auto geometry = read_window_options(options, bottom.axes() - axis_ - 1);
  if (!geometry) return error(geometry.error().message);
  put_windows(*std::move(geometry), shape_);
  return {};
}

Result<void> Im2colLayer::compute_output_size(const Shape& bottom) {
  const auto spatial = bottom.dims().begin() + axis_ + 1;
  shape_.src_size.assign(spatial, bottom.dims().end());
  shape_.dst_size.clear();
  for (std::size_t i = 0; i < shape_.kernel.size(); ++i) {
    const auto count = window_count(shape_, i, shape_.src_size[i]);
    if (!count) {
      return error(
          fmt::format("spatial axis {} of {}: {}", i, to_string(bottom), count.error().message));
    }
    shape_.dst_size.push_back(*count);
  }
  return {};
}

Result<void> Im2colLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  if (bottom.axes() != axis_ + 1 + static_cast<int>(shape_.kernel.size())) {
    return error(fmt::format("has {} spatial axes behind axis {}, its bottom is now {}",
                             shape_.kernel.size(), axis_, to_string(bottom)));
  }
  SPEEDO_TRY(compute_output_size(bottom));
  shape_.batch = bottom.count(0, axis_);
  shape_.channels = bottom[axis_];
  std::vector<std::int64_t> window{shape_.channels};
  window.insert(window.end(), shape_.kernel.begin(), shape_.kernel.end());
  const auto rows = Shape::create(std::move(window));
  if (!rows) return error("channels and kernel: " + rows.error().message);
  std::vector<std::int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + axis_);
  dims.push_back(rows->count());
  dims.insert(dims.end(), shape_.dst_size.begin(), shape_.dst_size.end());
  auto top = Shape::create(std::move(dims));
  if (!top) return error(top.error().message);
  tops[0]->reshape(*top);
  return {};
}

Result<void> Im2colLayer::forward(Tensors bottoms, Tensors tops) {
  backend().unfold(shape_, bottoms[0]->data(), tops[0]->data());
  return {};
}

void Im2colLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  backend().fold(shape_, tops[0]->grad(), bottoms[0]->grad());
}

}  // namespace speedo
