#include "core/layers/convolution_options.hpp"

#include <span>
#include <string>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

// One geometric option as the prototxt gives it.
struct Field {
  const char* repeated_name;
  const char* pair_name;
  std::span<const std::uint32_t> repeated;
  bool has_h, has_w;
  std::uint32_t h, w;
  std::int64_t fallback;  // when nothing is given; below `minimum`: something must be given
  std::int64_t minimum, maximum;
};

// Larger kernels and steps than this cannot fit any blob and would overflow sums of products.
constexpr std::int64_t kSizeMax = 1 << 30;

std::span<const std::uint32_t> view(const google::protobuf::RepeatedField<std::uint32_t>& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

Error field_error(std::string what) { return {ErrorCode::kConfig, std::move(what)}; }

Result<std::vector<std::int64_t>> resolve(const Field& field, int spatial_axes) {
  const auto axes = static_cast<std::size_t>(spatial_axes);
  std::vector<std::int64_t> values;
  if (field.has_h || field.has_w) {
    if (spatial_axes != 2) {
      return field_error(fmt::format("{0}_h and {0}_w need 2 spatial axes, there are {1}; use {2}",
                                     field.pair_name, spatial_axes, field.repeated_name));
    }
    if (!field.repeated.empty()) {
      return field_error(fmt::format("give either {0} or {1}_h and {1}_w, not both",
                                     field.repeated_name, field.pair_name));
    }
    values = {field.h, field.w};
  } else if (field.repeated.empty()) {
    values.assign(axes, field.fallback);
    if (field.fallback < field.minimum) {
      return field_error(fmt::format("{0} is missing; give {0}, or {1}_h and {1}_w",
                                     field.repeated_name, field.pair_name));
    }
  } else if (field.repeated.size() == 1) {
    values.assign(axes, field.repeated[0]);
  } else if (field.repeated.size() == axes) {
    values.assign(field.repeated.begin(), field.repeated.end());
  } else {
    return field_error(
        fmt::format("{} is given {} times for {} spatial axes; give it once, or once "
                    "per axis",
                    field.repeated_name, field.repeated.size(), spatial_axes));
  }
  for (const std::int64_t value : values) {
    if (value < field.minimum || value > field.maximum) {
      return field_error(fmt::format("{} is {}, it must be {} to {}", field.repeated_name, value,
                                     field.minimum, field.maximum));
    }
  }
  return values;
}

}  // namespace

Result<ConvolutionGeometry> read_convolution_options(const caffe::ConvolutionParameter& options,
                                                     int spatial_axes) {
  ConvolutionGeometry geometry;
  SPEEDO_ASSIGN(geometry.kernel, resolve({"kernel_size", "kernel", view(options.kernel_size()),
                                          options.has_kernel_h(), options.has_kernel_w(),
                                          options.kernel_h(), options.kernel_w(), 0, 1, kSizeMax},
                                         spatial_axes));
  SPEEDO_ASSIGN(geometry.stride,
                resolve({"stride", "stride", view(options.stride()), options.has_stride_h(),
                         options.has_stride_w(), options.stride_h(), options.stride_w(), 1, 1,
                         kSizeMax},
                        spatial_axes));
  SPEEDO_ASSIGN(geometry.pad, resolve({"pad", "pad", view(options.pad()), options.has_pad_h(),
                                       options.has_pad_w(), options.pad_h(), options.pad_w(), 0, 0,
                                       kWindowReachMax},
                                      spatial_axes));
  SPEEDO_ASSIGN(geometry.dilation, resolve({"dilation", "dilation", view(options.dilation()), false,
                                            false, 0, 0, 1, 1, kWindowReachMax},
                                           spatial_axes));
  return geometry;
}

}  // namespace speedo
