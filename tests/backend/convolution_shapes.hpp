#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include <speedo/backend/layout.hpp>
#include <speedo/backend/operations.hpp>

namespace speedo {

using Sizes = std::vector<std::int64_t>;

inline std::int64_t product_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Values about as large as one of them, however many terms each sums up.
inline std::vector<float> over_root(std::int64_t terms, std::vector<float> values) {
  for (float& value : values) value /= std::sqrt(static_cast<float>(terms));
  return values;
}

// All but dst_size, which follows.
inline ConvolutionShape shape_without_output(Sizes batch_channels_outputs_groups, Sizes src,
                                             Sizes kernel, Sizes stride, Sizes pad,
                                             Sizes dilation) {
  ConvolutionShape shape;
  shape.batch = batch_channels_outputs_groups[0];
  shape.channels = batch_channels_outputs_groups[1];
  shape.outputs = batch_channels_outputs_groups[2];
  shape.groups = batch_channels_outputs_groups[3];
  shape.src_size = std::move(src);
  shape.kernel = std::move(kernel);
  shape.stride = std::move(stride);
  shape.pad = std::move(pad);
  shape.dilation = std::move(dilation);
  return shape;
}

// Calls body(shape, layout) with the shape in every layout.
template <class Body>
void in_all_layouts(ConvolutionShape shape, const Body& body) {
  for (const LayoutKind kind : {LayoutKind::kPlain, LayoutKind::kBlocked8, LayoutKind::kBlocked16,
                                LayoutKind::kChannelsLast}) {
    shape.src_layout = layout_of(kind, shape.channels);
    shape.dst_layout = layout_of(kind, shape.outputs);
    body(shape, kind);
  }
}

}  // namespace speedo
