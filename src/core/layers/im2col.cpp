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
  shape_.kernel = std::move(geometry->kernel);
  shape_.stride = std::move(geometry->stride);
  shape_.pad = std::move(geometry->pad);
  shape_.dilation = std::move(geometry->dilation);
  return {};
}

Result<void> Im2colLayer::compute_output_size(const Shape& bottom) {
  const auto spatial = bottom.dims().begin() + axis_ + 1;
  shape_.src_size.assign(spatial, bottom.dims().end());
  shape_.dst_size.clear();
  for (std::size_t i = 0; i < shape_.kernel.size(); ++i) {
    const std::int64_t padded = shape_.src_size[i] + 2 * shape_.pad[i];
    const std::int64_t extent = shape_.dilation[i] * (shape_.kernel[i] - 1) + 1;
    if (extent > padded) {
      return error(
          fmt::format("kernel extent {} is larger than the padded input {} (spatial axis "
                      "{} of {}); use a smaller kernel or more padding",
                      extent, padded, i, to_string(bottom)));
    }
    shape_.dst_size.push_back((padded - extent) / shape_.stride[i] + 1);
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
