#pragma once

#include <cstdint>

#include <speedo/backend/operations.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {

// The windows of a pooling along one axis.
struct PoolingAxis {
  std::int64_t src, dst, kernel, pad;
  Divisor stride;

  // Of an output's window: where it begins in the image, before which it may lie too; what of it
  // lies in the image; and how long it is in the padded one.
  struct Reach {
    std::int64_t origin, first, last, length;
  };
  SPEEDO_HOST_DEVICE Reach reach(std::int64_t output) const {
    const std::int64_t origin = output * stride.value() - pad, whole = origin + kernel;
    const std::int64_t last = whole < src + pad ? whole : src + pad;
    return {origin, origin > 0 ? origin : 0, last < src ? last : src, last - origin};
  }
  // The outputs [first, last) whose windows have a source element.
  struct Outputs {
    std::int64_t first, last;
  };
  SPEEDO_HOST_DEVICE Outputs outputs(std::int64_t source) const {
    const std::int64_t behind = source + pad - kernel;
    const std::int64_t last = stride.quotient(source + pad) + 1;
    return {behind < 0 ? 0 : stride.quotient(behind) + 1, last < dst ? last : dst};
  }
};

// Those of an image. A tap is a place within a window, row by row, whatever of it is in the image.
struct PoolingWindows {
  PoolingAxis y, x;
  Divisor src_w, dst_w;

  // Requires: the images have elements.
  explicit PoolingWindows(const PoolingShape& shape)
      : y{shape.src_h, shape.dst_h, kernel_within(shape.kernel_h, shape.src_h, shape.pad_h),
          shape.pad_h, Divisor(shape.stride_h)},
        x{shape.src_w, shape.dst_w, kernel_within(shape.kernel_w, shape.src_w, shape.pad_w),
          shape.pad_w, Divisor(shape.stride_w)},
        src_w(shape.src_w),
        dst_w(shape.dst_w) {}

  std::int64_t taps() const { return y.kernel * x.kernel; }

  // Calls visit(place within the source's plane, tap) row by row, until it returns false, for an
  // output of the plane.
  template <class Visit>
  SPEEDO_HOST_DEVICE void for_each_source(std::int64_t output, const Visit& visit) const {
    const std::int64_t line = dst_w.quotient(output);
    const PoolingAxis::Reach rows = y.reach(line);
    const PoolingAxis::Reach columns = x.reach(output - line * dst_w.value());
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      const std::int64_t place = row * src_w.value();
      const std::int64_t tap = (row - rows.origin) * x.kernel - columns.origin;
      for (std::int64_t column = columns.first; column < columns.last; ++column) {
        if (!visit(place + column, tap + column)) return;
      }
    }
  }
  // Calls visit(output of the plane, tap) for those whose windows have the place of a source's
  // plane.
  template <class Visit>
  SPEEDO_HOST_DEVICE void for_each_output(std::int64_t place, const Visit& visit) const {
    const std::int64_t line = src_w.quotient(place), column = place - line * src_w.value();
    const PoolingAxis::Outputs rows = y.outputs(line), columns = x.outputs(column);
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      const std::int64_t tap_row = line + y.pad - row * y.stride.value();
      for (std::int64_t i = columns.first; i < columns.last; ++i) {
        const std::int64_t tap_column = column + x.pad - i * x.stride.value();
        visit(row * dst_w.value() + i, tap_row * x.kernel + tap_column);
      }
    }
  }
  // How many elements an output's window has in the padded image.
  SPEEDO_HOST_DEVICE float size(std::int64_t output) const {
    const std::int64_t line = dst_w.quotient(output);
    return static_cast<float>(y.reach(line).length * x.reach(output - line * dst_w.value()).length);
  }

 private:
  // What of a window lies beyond the padding counts for nothing.
  static std::int64_t kernel_within(std::int64_t kernel, std::int64_t src, std::int64_t pad) {
    return kernel < src + 2 * pad ? kernel : src + 2 * pad;
  }
};

}  // namespace speedo::gpu
