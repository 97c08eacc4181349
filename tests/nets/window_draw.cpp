#include "nets/window_draw.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace speedo::nets {
namespace {

struct Geometry {
  Sizes kernel, stride, pad, dilation;
  std::int64_t outputs = 1, groups = 1;
};

Geometry plain_geometry(std::size_t axes) {
  return {Sizes(axes, 1), Sizes(axes, 1), Sizes(axes, 0), Sizes(axes, 1)};
}

// As many values as there are axes, the same or not.
template <class F>
Sizes for_axes(Draw& draw, std::size_t axes, const F& one) {
  const bool alike = draw.chance(0.7F);
  Sizes values;
  for (std::size_t i = 0; i < axes; ++i) values.push_back(i > 0 && alike ? values[0] : one(i));
  return values;
}

void divide_channels(Draw& draw, std::int64_t channels, Geometry& geometry) {
  const std::int64_t groups = draw.between(1, channels);
  if (channels % groups != 0) return;
  geometry.groups = groups;
  geometry.outputs = groups * draw.between(1, std::max<std::int64_t>(1, 40 / groups));
}

Geometry general(Draw& draw, const Sizes& size) {
  Geometry g = plain_geometry(size.size());
  g.kernel = for_axes(draw, size.size(), [&](std::size_t) { return draw.between(1, 5); });
  g.stride = for_axes(draw, size.size(), [&](std::size_t) { return draw.pick({1L, 1L, 2L, 3L}); });
  if (draw.chance(0.25F)) {
    g.dilation = for_axes(draw, size.size(), [&](std::size_t) { return draw.between(1, 3); });
  }
  // Less than the kernel's extent: a window with nothing but padding would make constants.
  for (std::size_t i = 0; i < size.size(); ++i) {
    g.pad[i] = std::min(draw.between(0, 5), g.dilation[i] * (g.kernel[i] - 1));
  }
  return g;
}

Geometry draw_geometry(Draw& draw, const Sizes& bottom) {
  const Sizes size(bottom.begin() + 2, bottom.end());
  Geometry g = plain_geometry(size.size());
  g.outputs = draw.channels();
  switch (draw.below(8)) {
    case 0:
    case 1:  // 1x1
      g.stride = for_axes(draw, size.size(), [&](std::size_t) { return draw.between(1, 3); });
      break;
    case 2:  // as large as the image
      g.kernel = size;
      break;
    case 3:
    case 4:
      g.kernel.assign(size.size(), 3);
      g.pad.assign(size.size(), 1);
      break;
    case 5:  // by channel
      g = general(draw, size);
      g.groups = bottom[1];
      g.outputs = bottom[1] * draw.pick({1L, 1L, 2L});
      break;
    default:
      g = general(draw, size);
      g.outputs = draw.channels();
      if (draw.chance(0.3F)) divide_channels(draw, bottom[1], g);
  }
  return g;
}

std::string options_text(Draw& draw, const Geometry& g) {
  return fmt::format(
      "convolution_param {{ num_output: {} group: {} kernel_size: [{}] stride: [{}] pad: [{}] "
      "dilation: [{}] bias_term: {} }}",
      g.outputs, g.groups, fmt::join(g.kernel, ", "), fmt::join(g.stride, ", "),
      fmt::join(g.pad, ", "), fmt::join(g.dilation, ", "), draw.chance(0.6F));
}

std::optional<Windows> make_windows(Draw& draw, const Sizes& bottom, const Geometry& g,
                                    std::int64_t products_max) {
  Windows windows;
  windows.dims = {bottom[0], g.outputs};
  for (std::size_t i = 0; i < g.kernel.size(); ++i) {
    const std::int64_t rest =
        bottom[i + 2] + 2 * g.pad[i] - (g.dilation[i] * (g.kernel[i] - 1) + 1);
    if (rest < 0) return std::nullopt;
    windows.dims.push_back(rest / g.stride[i] + 1);
  }
  const std::int64_t products = count_of(windows.dims) * bottom[1] / g.groups * count_of(g.kernel);
  if (products > products_max) return std::nullopt;
  windows.options = options_text(draw, g);
  return windows;
}

// Caffe rounds up, and takes a window away that would start beyond the image if either axis is
// padded. None if one is left that does.
std::optional<std::int64_t> pooled_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                        std::int64_t pad, bool any_pad) {
  const std::int64_t rest = size + 2 * pad - kernel;
  if (rest < 0) return std::nullopt;
  std::int64_t windows = (rest + stride - 1) / stride + 1;
  if (any_pad && (windows - 1) * stride >= size + pad) --windows;
  if ((windows - 1) * stride >= size + pad) return std::nullopt;
  return windows;
}

}  // namespace

std::int64_t count_of(const Sizes& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t Draw::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
}

std::int64_t Draw::channels() {
  switch (below(5)) {
    case 0:
    case 1:
      return between(1, 8);
    case 2:
      return pick({8L, 16L, 24L, 32L});
    default:
      return between(1, 40);
  }
}

std::optional<Windows> draw_convolution(Draw& draw, const Sizes& bottom,
                                        std::int64_t products_max) {
  if (bottom.size() < 3) return std::nullopt;
  return make_windows(draw, bottom, draw_geometry(draw, bottom), products_max);
}

std::optional<Windows> draw_deconvolution(Draw& draw, const Sizes& bottom,
                                          std::int64_t products_max) {
  if (bottom.size() < 3) return std::nullopt;
  Geometry g = general(draw, {bottom.begin() + 2, bottom.end()});
  g.outputs = draw.channels();
  if (draw.chance(0.4F)) {
    g.outputs = g.groups = bottom[1];
  } else if (draw.chance(0.3F)) {
    divide_channels(draw, bottom[1], g);
  }
  Windows windows{{}, {bottom[0], g.outputs}};
  for (std::size_t i = 0; i < g.kernel.size(); ++i) {
    const std::int64_t extent = g.dilation[i] * (g.kernel[i] - 1) + 1;
    const std::int64_t size = g.stride[i] * (bottom[i + 2] - 1) + extent - 2 * g.pad[i];
    if (size < 1) return std::nullopt;
    windows.dims.push_back(size);
  }
  const std::int64_t products = count_of(bottom) * g.outputs / g.groups * count_of(g.kernel);
  if (products > products_max) return std::nullopt;
  windows.options = options_text(draw, g);
  return windows;
}

std::optional<Windows> draw_same_size_convolution(Draw& draw, const Sizes& bottom,
                                                  std::int64_t products_max) {
  if (bottom.size() < 3) return std::nullopt;
  Geometry g = plain_geometry(bottom.size() - 2);
  const std::int64_t reach = draw.between(0, 1);
  g.kernel.assign(g.kernel.size(), 2 * reach + 1);
  g.pad.assign(g.pad.size(), reach);
  g.outputs = draw.chance(0.5F) ? bottom[1] : draw.channels();
  return make_windows(draw, bottom, g, products_max);
}

std::optional<Windows> draw_pooling(Draw& draw, const Sizes& bottom) {
  const std::string method = draw.chance(0.6F) ? "MAX" : "AVE";
  if (draw.chance(0.1F)) {
    return Windows{fmt::format("pooling_param {{ pool: {} global_pooling: true }}", method),
                   {bottom[0], bottom[1], 1, 1}};
  }
  const Sizes kernel = for_axes(draw, 2, [&](std::size_t) { return draw.between(1, 4); });
  const Sizes stride = for_axes(draw, 2, [&](std::size_t) { return draw.between(1, 3); });
  Sizes pad(2, 0);
  if (draw.chance(0.4F)) {
    pad = for_axes(draw, 2, [&](std::size_t i) { return draw.between(0, kernel[i] - 1); });
  }
  Windows windows{{}, {bottom[0], bottom[1]}};
  for (std::size_t i = 0; i < 2; ++i) {
    if (pad[i] >= kernel[i]) return std::nullopt;
    const auto size =
        pooled_size(bottom[i + 2], kernel[i], stride[i], pad[i], pad[0] > 0 || pad[1] > 0);
    if (!size) return std::nullopt;
    windows.dims.push_back(*size);
  }
  windows.options = fmt::format(
      "pooling_param {{ pool: {} kernel_h: {} kernel_w: {} stride_h: {} stride_w: {} pad_h: {} "
      "pad_w: {} }}",
      method, kernel[0], kernel[1], stride[0], stride[1], pad[0], pad[1]);
  return windows;
}

}  // namespace speedo::nets
