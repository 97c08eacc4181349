#include "gpu/convolution/im2col.hpp"

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "gpu/convolution/convolution_pass.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {
namespace {

constexpr int kWindowAxesMax = kBlobAxesMax - 2;

// One axis of the windows.
struct WindowAxis {
  Divisor src, dst, kernel, stride;
  std::int64_t pad, dilation;
};

// Planes: of all samples and channels. A tap is a place within a window.
struct WindowMatrices {
  std::int64_t planes;
  Divisor src_plane, dst_plane, taps;
  int axes;
  WindowAxis axis[kWindowAxesMax];

  // The element of a plane at a window's tap; -1: in the padding.
  SPEEDO_HOST_DEVICE std::int64_t element_of(std::int64_t window, std::int64_t tap) const {
    std::int64_t element = 0, step = 1;
    for (int i = axes; i-- > 0;) {
      const WindowAxis& a = axis[i];
      const std::int64_t next_window = a.dst.quotient(window), next_tap = a.kernel.quotient(tap);
      const std::int64_t x = (window - next_window * a.dst.value()) * a.stride.value() - a.pad +
                             (tap - next_tap * a.kernel.value()) * a.dilation;
      if (x < 0 || x >= a.src.value()) return -1;
      element += x * step;
      step *= a.src.value();
      window = next_window;
      tap = next_tap;
    }
    return element;
  }
  // The window that has an element of a plane as its tap; -1: none.
  SPEEDO_HOST_DEVICE std::int64_t window_of(std::int64_t element, std::int64_t tap) const {
    std::int64_t window = 0, step = 1;
    for (int i = axes; i-- > 0;) {
      const WindowAxis& a = axis[i];
      const std::int64_t next_element = a.src.quotient(element), next_tap = a.kernel.quotient(tap);
      const std::int64_t x = element - next_element * a.src.value() + a.pad -
                             (tap - next_tap * a.kernel.value()) * a.dilation;
      if (x < 0) return -1;
      const std::int64_t at = a.stride.quotient(x);
      if (at * a.stride.value() != x || at >= a.dst.value()) return -1;
      window += at * step;
      step *= a.dst.value();
      element = next_element;
      tap = next_tap;
    }
    return window;
  }
};

// Requires: no size is 0.
WindowMatrices matrices_of(const ConvolutionShape& shape) {
  SPEEDO_ASSERT(shape.kernel.size() <= kWindowAxesMax);
  WindowMatrices all{shape.batch * shape.channels,          Divisor(count_of(shape.src_size)),
                     Divisor(count_of(shape.dst_size)),     Divisor(count_of(shape.kernel)),
                     static_cast<int>(shape.kernel.size()), {}};
  for (std::size_t i = 0; i < shape.kernel.size(); ++i) {
    all.axis[i] = {Divisor(shape.src_size[i]),
                   Divisor(shape.dst_size[i]),
                   Divisor(shape.kernel[i]),
                   Divisor(shape.stride[i]),
                   shape.pad[i],
                   shape.dilation[i]};
  }
  return all;
}

struct UnfoldKernel {
  static constexpr const char* kName = "unfold";
  WindowMatrices all;
  std::int64_t n;
  const float* src;
  float* matrices;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const std::int64_t row = all.dst_plane.quotient(i), plane = all.taps.quotient(row);
      const std::int64_t element =
          all.element_of(i - row * all.dst_plane.value(), row - plane * all.taps.value());
      matrices[i] = element < 0 ? 0.0F : src[plane * all.src_plane.value() + element];
    }
  }
};

// Each thread sums up what is of one element, in the order of the taps.
struct FoldKernel {
  static constexpr const char* kName = "fold";
  WindowMatrices all;
  std::int64_t n;
  const float* matrices;
  float* src;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const std::int64_t plane = all.src_plane.quotient(i);
      const std::int64_t element = i - plane * all.src_plane.value();
      const float* row = matrices + plane * all.taps.value() * all.dst_plane.value();
      float sum = 0.0F;
      for (std::int64_t tap = 0; tap < all.taps.value(); ++tap, row += all.dst_plane.value()) {
        const std::int64_t window = all.window_of(element, tap);
        if (window >= 0) sum += row[window];
      }
      src[i] = sum;
    }
  }
};

}  // namespace

void unfold(Queue& queue, const ConvolutionShape& shape, const float* src, float* matrices) {
  const std::int64_t n =
      shape.batch * shape.channels * count_of(shape.kernel) * count_of(shape.dst_size);
  if (n == 0) return;
  launch(queue, grid_for(queue, n), UnfoldKernel{matrices_of(shape), n, src, matrices});
}

void fold(Queue& queue, const ConvolutionShape& shape, const float* matrices, float* src) {
  const std::int64_t n = shape.batch * shape.channels * count_of(shape.src_size);
  if (n == 0) return;
  launch(queue, grid_for(queue, n), FoldKernel{matrices_of(shape), n, matrices, src});
}

}  // namespace speedo::gpu
