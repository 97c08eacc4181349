#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>

#include <speedo/backend/operations.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {

// The windows of a pooling along one axis.
struct PoolingAxis {
  int src, dst, kernel, pad, stride;
  Divisor by_stride;

  // What of a window lies beyond the padding counts for nothing, and so does the step after the
  // only one.
  PoolingAxis(std::int64_t src_size, std::int64_t dst_size, std::int64_t window, std::int64_t step,
              std::int64_t padding)
      : src(static_cast<int>(src_size)),
        dst(static_cast<int>(dst_size)),
        kernel(static_cast<int>(std::min(window, src_size + 2 * padding))),
        pad(static_cast<int>(padding)),
        stride(dst_size == 1 ? 1 : static_cast<int>(step)),
        by_stride(stride) {}

  // Of an output's window: where it begins in the image, before which it may lie too; what of it
  // lies in the image; and how long it is in the padded one.
  struct Reach {
    int origin, first, last, length;
  };
  SPEEDO_HOST_DEVICE Reach reach(int output) const {
    const int origin = output * stride - pad, whole = origin + kernel;
    const int last = whole < src + pad ? whole : src + pad;
    return {origin, origin > 0 ? origin : 0, last < src ? last : src, last - origin};
  }
  // The outputs [first, last) whose windows have a source element.
  struct Outputs {
    int first, last;
  };
  SPEEDO_HOST_DEVICE Outputs outputs(int source) const {
    const int behind = source + pad - kernel;
    const int last = by_stride.quotient(source + pad) + 1;
    return {behind < 0 ? 0 : by_stride.quotient(behind) + 1, last < dst ? last : dst};
  }
};

// Those of an image. A tap is a place within a window, row by row, whatever of it is in the image.
struct PoolingWindows {
  PoolingAxis y, x;
  Divisor src_w, dst_w;

  // Requires: the images have elements, and have_room_for(shape).
  explicit PoolingWindows(const PoolingShape& shape)
      : y(shape.src_h, shape.dst_h, shape.kernel_h, shape.stride_h, shape.pad_h),
        x(shape.src_w, shape.dst_w, shape.kernel_w, shape.stride_w, shape.pad_w),
        src_w(shape.src_w),
        dst_w(shape.dst_w) {}

  // Whether places in a padded plane, and sums of two, are ints.
  static bool have_room_for(const PoolingShape& shape) {
    return (shape.src_h + 2 * shape.pad_h) * (shape.src_w + 2 * shape.pad_w) <= INT_MAX / 2;
  }
  std::int64_t taps() const { return std::int64_t{y.kernel} * x.kernel; }

  // Calls visit(place within the source's plane, tap) row by row, until it returns false, for an
  // output of the plane.
  template <class Visit>
  SPEEDO_HOST_DEVICE void for_each_source(int output, const Visit& visit) const {
    const int line = dst_w.quotient(output);
    const PoolingAxis::Reach rows = y.reach(line);
    const PoolingAxis::Reach columns = x.reach(output - line * x.dst);
    for (int row = rows.first; row < rows.last; ++row) {
      const int place = row * x.src;
      const int tap = (row - rows.origin) * x.kernel - columns.origin;
      for (int column = columns.first; column < columns.last; ++column) {
        if (!visit(place + column, tap + column)) return;
      }
    }
  }
  // Calls visit(output of the plane, tap) for those whose windows have the place of a source's
  // plane.
  template <class Visit>
  SPEEDO_HOST_DEVICE void for_each_output(int place, const Visit& visit) const {
    const int line = src_w.quotient(place), column = place - line * x.src;
    const PoolingAxis::Outputs rows = y.outputs(line), columns = x.outputs(column);
    for (int row = rows.first; row < rows.last; ++row) {
      const int tap_row = line + y.pad - row * y.stride;
      for (int i = columns.first; i < columns.last; ++i) {
        const int tap_column = column + x.pad - i * x.stride;
        visit(row * x.dst + i, tap_row * x.kernel + tap_column);
      }
    }
  }
  // How many elements an output's window has in the padded image.
  SPEEDO_HOST_DEVICE float size(int output) const {
    const int line = dst_w.quotient(output);
    return static_cast<float>(y.reach(line).length * x.reach(output - line * x.dst).length);
  }
};

}  // namespace speedo::gpu
