#pragma once

#include <cstdint>
#include <vector>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

namespace caffe {
class ConvolutionParameter;
class PoolingParameter;
}  // namespace caffe

namespace speedo {

// How a window lies on a blob: one value per spatial axis.
struct WindowGeometry {
  std::vector<std::int64_t> kernel, stride, pad, dilation;
};

// What a prototxt says of windows. Caffe's rules for an option: a repeated field holds one value
// for all axes or one per axis; the _h and _w forms are for two axes and exclude that field.
// Kernel, stride and dilation are at least 1, and all are small enough for sums of their products.
// Errors: kConfig, without the layer's name.

// Here one of _h and _w may be left out, and is 0.
Result<WindowGeometry> read_window_options(const caffe::ConvolutionParameter& options,
                                           int spatial_axes);

// Into an operation's shape.
void put_windows(WindowGeometry geometry, ConvolutionShape& shape);

// How many windows of `shape` fit along a spatial axis of `size` elements. Error: kConfig, without
// names.
Result<std::int64_t> window_count(const ConvolutionShape& shape, std::size_t axis,
                                  std::int64_t size);

// Two axes. _h and _w come together; with global_pooling there is no kernel but 1, which stands for
// the image's size.
Result<WindowGeometry> read_window_options(const caffe::PoolingParameter& options);

}  // namespace speedo
