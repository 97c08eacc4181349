#include "core/layers/window_options.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

// What is true of an option whatever the prototxt says.
struct WindowRule {
  const char* name;
  const char* pair_name;  // of NAME_h and NAME_w
  std::int64_t minimum, maximum;
  std::int64_t fallback;  // when nothing is given; below `minimum`: something must be given
};

// Larger kernels and steps than this cannot fit any blob and would overflow sums of products.
constexpr std::int64_t kSizeMax = 1 << 30;

constexpr WindowRule kKernel{"kernel_size", "kernel", 1, kSizeMax, 0};
constexpr WindowRule kStride{"stride", "stride", 1, kSizeMax, 1};
constexpr WindowRule kPad{"pad", "pad", 0, kWindowReachMax, 0};
constexpr WindowRule kPoolingPad{"pad", "pad", 0, kSizeMax, 0};
constexpr WindowRule kDilation{"dilation", "dilation", 1, kWindowReachMax, 1};

// An option as the prototxt gives it.
struct GivenOption {
  std::vector<std::int64_t> values;  // of the field without _h and _w
  std::optional<std::int64_t> h, w;
};

std::vector<std::int64_t> all_of(const google::protobuf::RepeatedField<std::uint32_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> once(bool has, std::uint32_t value) {
  return has ? std::vector<std::int64_t>{value} : std::vector<std::int64_t>{};
}

std::optional<std::int64_t> given(bool has, std::uint32_t value) {
  return has ? std::optional<std::int64_t>(value) : std::nullopt;
}

// Both messages have these fields.
template <class Options>
GivenOption kernel_of(const Options& options, std::vector<std::int64_t> values) {
  return {std::move(values), given(options.has_kernel_h(), options.kernel_h()),
          given(options.has_kernel_w(), options.kernel_w())};
}

template <class Options>
GivenOption stride_of(const Options& options, std::vector<std::int64_t> values) {
  return {std::move(values), given(options.has_stride_h(), options.stride_h()),
          given(options.has_stride_w(), options.stride_w())};
}

template <class Options>
GivenOption pad_of(const Options& options, std::vector<std::int64_t> values) {
  return {std::move(values), given(options.has_pad_h(), options.pad_h()),
          given(options.has_pad_w(), options.pad_w())};
}

Error option_error(std::string what) { return {ErrorCode::kConfig, std::move(what)}; }

Result<std::vector<std::int64_t>> per_axis(const WindowRule& rule, const GivenOption& option,
                                           int spatial_axes) {
  const auto axes = static_cast<std::size_t>(spatial_axes);
  if (option.h || option.w) {
    if (spatial_axes != 2) {
      return option_error(fmt::format("{0}_h and {0}_w need 2 spatial axes, there are {1}; use {2}",
                                      rule.pair_name, spatial_axes, rule.name));
    }
    if (!option.values.empty()) {
      return option_error(
          fmt::format("give either {0} or {1}_h and {1}_w, not both", rule.name, rule.pair_name));
    }
    return std::vector<std::int64_t>{option.h.value_or(0), option.w.value_or(0)};
  }
  if (option.values.empty()) {
    if (spatial_axes == 0) return std::vector<std::int64_t>();
    if (rule.fallback >= rule.minimum) return std::vector<std::int64_t>(axes, rule.fallback);
    return option_error(
        fmt::format("{0} is missing; give {0}, or {1}_h and {1}_w", rule.name, rule.pair_name));
  }
  if (option.values.size() == 1) return std::vector<std::int64_t>(axes, option.values[0]);
  if (option.values.size() == axes) return option.values;
  return option_error(
      fmt::format("{} is given {} times for {} spatial axes; give it once, or once per axis",
                  rule.name, option.values.size(), spatial_axes));
}

Result<std::vector<std::int64_t>> read_option(const WindowRule& rule, const GivenOption& option,
                                              int spatial_axes) {
  SPEEDO_ASSIGN(std::vector<std::int64_t> values, per_axis(rule, option, spatial_axes));
  for (const std::int64_t value : values) {
    if (value < rule.minimum || value > rule.maximum) {
      return option_error(fmt::format("{} is {}, it must be {} to {}", rule.name, value,
                                      rule.minimum, rule.maximum));
    }
  }
  return values;
}

// Pooling's: two axes with both of _h and _w, or neither. `words`: what the option is called.
Result<std::vector<std::int64_t>> read_whole(const WindowRule& rule, const char* words,
                                             const GivenOption& option) {
  if (option.h.has_value() != option.w.has_value()) {
    return option_error(fmt::format("give both {0}_h and {0}_w", rule.pair_name));
  }
  SPEEDO_ASSIGN(std::vector<std::int64_t> values, per_axis(rule, option, 2));
  const auto [least, most] = std::ranges::minmax(values);
  if (least < rule.minimum) {
    return option_error(fmt::format("the {} must be at least {}", words, rule.minimum));
  }
  if (most > rule.maximum) {
    return option_error(fmt::format("{} must be at most {}", rule.pair_name, rule.maximum));
  }
  return values;
}

}  // namespace

Result<WindowGeometry> read_window_options(const caffe::ConvolutionParameter& options,
                                           int spatial_axes) {
  WindowGeometry geometry;
  SPEEDO_ASSIGN(
      geometry.kernel,
      read_option(kKernel, kernel_of(options, all_of(options.kernel_size())), spatial_axes));
  SPEEDO_ASSIGN(geometry.stride,
                read_option(kStride, stride_of(options, all_of(options.stride())), spatial_axes));
  SPEEDO_ASSIGN(geometry.pad,
                read_option(kPad, pad_of(options, all_of(options.pad())), spatial_axes));
  SPEEDO_ASSIGN(geometry.dilation,
                read_option(kDilation, {all_of(options.dilation()), {}, {}}, spatial_axes));
  return geometry;
}

void put_windows(WindowGeometry geometry, ConvolutionShape& shape) {
  shape.kernel = std::move(geometry.kernel);
  shape.stride = std::move(geometry.stride);
  shape.pad = std::move(geometry.pad);
  shape.dilation = std::move(geometry.dilation);
}

Result<std::int64_t> window_count(const ConvolutionShape& shape, std::size_t axis,
                                  std::int64_t size) {
  const std::int64_t padded = size + 2 * shape.pad[axis];
  const std::int64_t extent = shape.dilation[axis] * (shape.kernel[axis] - 1) + 1;
  if (extent <= padded) return (padded - extent) / shape.stride[axis] + 1;
  return option_error(
      fmt::format("kernel extent {} is larger than the padded input {}; use a smaller kernel or "
                  "more padding",
                  extent, padded));
}

Result<WindowGeometry> read_window_options(const caffe::PoolingParameter& options) {
  const bool any_kernel =
      options.has_kernel_size() || options.has_kernel_h() || options.has_kernel_w();
  if (options.global_pooling() && any_kernel) {
    return option_error("global_pooling takes the whole image; leave the kernel size out");
  }
  if (!options.global_pooling() && !any_kernel) {
    return option_error(
        "pooling_param needs kernel_size, kernel_h and kernel_w, or global_pooling");
  }
  GivenOption kernel = kernel_of(options, once(options.has_kernel_size(), options.kernel_size()));
  if (options.global_pooling()) kernel.values = {1};
  WindowGeometry geometry;
  geometry.dilation = {1, 1};
  SPEEDO_ASSIGN(geometry.kernel, read_whole(kKernel, "kernel size", kernel));
  SPEEDO_ASSIGN(geometry.stride,
                read_whole(kStride, "stride",
                           stride_of(options, once(options.has_stride(), options.stride()))));
  SPEEDO_ASSIGN(geometry.pad,
                read_whole(kPoolingPad, "pad",
                           pad_of(options, once(options.has_pad(), options.pad()))));
  if (std::ranges::max(geometry.pad) > kWindowReachMax) {
    return option_error(fmt::format("pad is {} x {}, it must be at most {}", geometry.pad[0],
                                    geometry.pad[1], kWindowReachMax));
  }
  return geometry;
}

}  // namespace speedo
