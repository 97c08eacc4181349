#pragma once

#include <cstdint>

#include <speedo/backend/operations.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {

// The windows of a pooling along one axis.
struct PoolingAxis {
  std::int64_t src, dst, kernel, stride, pad;

  // What of an output's window lies in the image, and how long it is in the padded one.
  struct Reach {
    std::int64_t first, last, length;
  };
  SPEEDO_HOST_DEVICE Reach reach(std::int64_t output) const {
    const std::int64_t first = output * stride - pad, whole = first + kernel;
    const std::int64_t last = whole < src + pad ? whole : src + pad;
    return {first > 0 ? first : 0, last < src ? last : src, last - first};
  }
  // The outputs [first, last) whose windows have a source element.
  struct Outputs {
    std::int64_t first, last;
  };
  SPEEDO_HOST_DEVICE Outputs outputs(std::int64_t source) const {
    const std::int64_t behind = source + pad - kernel;
    const std::int64_t last = (source + pad) / stride + 1;
    return {behind < 0 ? 0 : behind / stride + 1, last < dst ? last : dst};
  }
};

// Those of an image.
struct PoolingWindows {
  PoolingAxis y, x;
  Divisor src_w, dst_w;

  // Requires: the images have elements.
  explicit PoolingWindows(const PoolingShape& shape)
      : y{shape.src_h, shape.dst_h, shape.kernel_h, shape.stride_h, shape.pad_h},
        x{shape.src_w, shape.dst_w, shape.kernel_w, shape.stride_w, shape.pad_w},
        src_w(shape.src_w),
        dst_w(shape.dst_w) {}

  // Calls visit(place within the source's plane) row by row, until it returns false, for an output
  // of the plane.
  template <class Visit>
  SPEEDO_HOST_DEVICE void for_each_source(std::int64_t output, const Visit& visit) const {
    const PoolingAxis::Reach rows = y.reach(dst_w.quotient(output));
    const PoolingAxis::Reach columns = x.reach(dst_w.remainder(output));
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      for (std::int64_t column = columns.first; column < columns.last; ++column) {
        if (!visit(row * src_w.value() + column)) return;
      }
    }
  }
  // Calls visit(output of the plane) for those whose windows have the place of a source's plane.
  template <class Visit>
  SPEEDO_HOST_DEVICE void for_each_output(std::int64_t place, const Visit& visit) const {
    const PoolingAxis::Outputs rows = y.outputs(src_w.quotient(place));
    const PoolingAxis::Outputs columns = x.outputs(src_w.remainder(place));
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      for (std::int64_t column = columns.first; column < columns.last; ++column) {
        visit(row * dst_w.value() + column);
      }
    }
  }
  // How many elements an output's window has in the padded image.
  SPEEDO_HOST_DEVICE float size(std::int64_t output) const {
    return static_cast<float>(y.reach(dst_w.quotient(output)).length *
                              x.reach(dst_w.remainder(output)).length);
  }
};

}  // namespace speedo::gpu
