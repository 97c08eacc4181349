#include "gpu/convolution/im2col.hpp"

#include <speedo/base/assert.hpp>

#include "gpu/convolution/convolution_pass.hpp"
#include "gpu/launch/launch.hpp"

namespace speedo::gpu {
namespace {

constexpr int kWindowAxesMax = 8;

// One axis of the windows.
struct WindowAxis {
  std::int64_t src, dst, kernel, stride, pad, dilation;
};

struct Windows {
  WindowAxis axes[kWindowAxesMax];
  int count;
  std::int64_t planes, src_plane, dst_plane, taps;  // planes: of all samples and channels
};

Windows windows_of(const ConvolutionShape& shape) {
  SPEEDO_ASSERT(shape.kernel.size() <= kWindowAxesMax);
  Windows all{{}, static_cast<int>(shape.kernel.size()), shape.batch * shape.channels,
              count_of(shape.src_size), count_of(shape.dst_size), count_of(shape.kernel)};
  for (std::size_t i = 0; i < shape.kernel.size(); ++i) {
    all.axes[i] = {shape.src_size[i], shape.dst_size[i], shape.kernel[i],
                   shape.stride[i],   shape.pad[i],      shape.dilation[i]};
  }
  return all;
}

// The element of src at a window's place; -1: in the padding.
SPEEDO_HOST_DEVICE inline std::int64_t look(const Windows& all, std::int64_t tap,
                                            std::int64_t window) {
  std::int64_t place = 0, step = 1;
  for (int i = all.count; i-- > 0;) {
    const WindowAxis& axis = all.axes[i];
    const std::int64_t x = window % axis.dst * axis.stride - axis.pad +
                           tap % axis.kernel * axis.dilation;
    if (x < 0 || x >= axis.src) return -1;
    place += x * step;
    step *= axis.src;
    tap /= axis.kernel;
    window /= axis.dst;
  }
  return place;
}

// The window that has an element of src as its tap; -1: none.
SPEEDO_HOST_DEVICE inline std::int64_t window_of(const Windows& all, std::int64_t tap,
                                                 std::int64_t element) {
  std::int64_t place = 0, step = 1;
  for (int i = all.count; i-- > 0;) {
    const WindowAxis& axis = all.axes[i];
    const std::int64_t x = element % axis.src + axis.pad - tap % axis.kernel * axis.dilation;
    if (x < 0 || x % axis.stride != 0 || x / axis.stride >= axis.dst) return -1;
    place += x / axis.stride * step;
    step *= axis.dst;
    tap /= axis.kernel;
    element /= axis.src;
  }
  return place;
}

struct UnfoldKernel {
  static constexpr const char* kName = "unfold";
  Windows all;
  const float* src;
  float* matrices;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const std::int64_t n = all.planes * all.taps * all.dst_plane;
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const std::int64_t row = i / all.dst_plane;
      const std::int64_t place = look(all, row % all.taps, i % all.dst_plane);
      matrices[i] = place < 0 ? 0.0F : src[row / all.taps * all.src_plane + place];
    }
  }
};

// Each thread sums up what is of one element, in the order of the taps.
struct FoldKernel {
  static constexpr const char* kName = "fold";
  Windows all;
  const float* matrices;
  float* src;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const std::int64_t n = all.planes * all.src_plane;
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const float* const rows = matrices + i / all.src_plane * all.taps * all.dst_plane;
      float sum = 0.0F;
      for (std::int64_t tap = 0; tap < all.taps; ++tap) {
        const std::int64_t window = window_of(all, tap, i % all.src_plane);
        if (window >= 0) sum += rows[tap * all.dst_plane + window];
      }
      src[i] = sum;
    }
  }
};

}  // namespace

void unfold(Queue& queue, const ConvolutionShape& shape, const float* src, float* matrices) {
  const UnfoldKernel kernel{windows_of(shape), src, matrices};
  const std::int64_t n = kernel.all.planes * kernel.all.taps * kernel.all.dst_plane;
  if (n > 0) launch(queue, grid_for(n), kernel);
}

void fold(Queue& queue, const ConvolutionShape& shape, const float* matrices, float* src) {
  const FoldKernel kernel{windows_of(shape), matrices, src};
  const std::int64_t n = kernel.all.planes * kernel.all.src_plane;
  if (n > 0) launch(queue, grid_for(n), kernel);
}

}  // namespace speedo::gpu
