#include "gpu/pooling/pooling_stochastic.hpp"

#include <cfloat>

#include <speedo/base/random.hpp>

#include "gpu/launch/launch.hpp"
#include "gpu/pooling/pooling_windows.hpp"

namespace speedo::gpu {
namespace {

// Plain planes and their windows.
struct WindowPlanes {
  std::int64_t src_count, dst_count;
  Divisor src_plane, dst_plane;
  PoolingWindows windows;

  SPEEDO_HOST_DEVICE double sum(const float* plane, int output) const {
    double sum = 0.0;
    windows.for_each_source(output, [&](int place, int /*tap*/) {
      sum += static_cast<double>(plane[place]);
      return true;
    });
    return sum;
  }
};

struct SampleKernel {
  static constexpr const char* kName = "sample_windows";
  WindowPlanes planes;
  const std::uint64_t* seed_at;  // null: the seed
  std::uint64_t seed;
  const float* src;
  float* dst;
  float* winners;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const std::uint64_t first = seed_at == nullptr ? seed : *seed_at;
    for (std::int64_t i = lane.first(); i < planes.dst_count; i += lane.stride()) {
      const std::int64_t index = planes.dst_plane.quotient(i);
      const auto output = static_cast<int>(i - index * planes.dst_plane.value());
      const float* const plane = src + index * planes.src_plane.value();
      const std::uint64_t bits = mix64(first + static_cast<std::uint64_t>(i)) >> 40U;
      const double wanted = static_cast<double>(bits) / 16777216.0 * planes.sum(plane, output);
      double running = 0.0;
      int winner = 0;
      planes.windows.for_each_source(output, [&](int place, int /*tap*/) {
        running += static_cast<double>(plane[place]);
        winner = place;
        return running < wanted;
      });
      dst[i] = plane[winner];
      winners[i] = static_cast<float>(winner);
    }
  }
};

struct WeighKernel {
  static constexpr const char* kName = "weigh_windows";
  WindowPlanes planes;
  const float* src;
  float* dst;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < planes.dst_count; i += lane.stride()) {
      const std::int64_t index = planes.dst_plane.quotient(i);
      const float* const plane = src + index * planes.src_plane.value();
      double sum = static_cast<double>(FLT_MIN), squares = 0.0;
      planes.windows.for_each_source(static_cast<int>(i - index * planes.dst_plane.value()),
                                     [&](int place, int /*tap*/) {
                                       const auto value = static_cast<double>(plane[place]);
                                       sum += value;
                                       squares += value * value;
                                       return true;
                                     });
      dst[i] = static_cast<float>(squares / sum);
    }
  }
};

// Both backward passes: the gradient by a source element is a sum over the windows that have it.
template <class Share>
struct WindowGradientKernel {
  static constexpr const char* kName = Share::kName;
  WindowPlanes planes;
  Share share;
  float* src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < planes.src_count; i += lane.stride()) {
      const std::int64_t index = planes.src_plane.quotient(i);
      const std::int64_t first = index * planes.src_plane.value();
      const auto place = static_cast<int>(i - first);
      const std::int64_t outputs = index * planes.dst_plane.value();
      double sum = 0.0;
      planes.windows.for_each_output(place, [&](int output, int /*tap*/) {
        sum += share(planes, first, place, outputs, output);
      });
      src_grad[i] = static_cast<float>(sum);
    }
  }
};

struct SampledShare {
  static constexpr const char* kName = "sample_windows_backward";
  const float* winners;
  const float* dst_grad;

  SPEEDO_HOST_DEVICE double operator()(const WindowPlanes& /*planes*/, std::int64_t /*first*/,
                                       int place, std::int64_t outputs, int output) const {
    const std::int64_t at = outputs + output;
    return static_cast<int>(winners[at]) == place ? static_cast<double>(dst_grad[at]) : 0.0;
  }
};

struct WeighedShare {
  static constexpr const char* kName = "weigh_windows_backward";
  const float* src;
  const float* dst;
  const float* dst_grad;

  SPEEDO_HOST_DEVICE double operator()(const WindowPlanes& planes, std::int64_t first, int place,
                                       std::int64_t outputs, int output) const {
    const std::int64_t at = outputs + output;
    const double sum = static_cast<double>(FLT_MIN) + planes.sum(src + first, output);
    const double value = static_cast<double>(src[first + place]);
    return (2.0 * value - static_cast<double>(dst[at])) / sum * static_cast<double>(dst_grad[at]);
  }
};

// Its windows have no padding.
PoolingShape without_padding(PoolingShape shape) {
  shape.pad_h = shape.pad_w = 0;
  return shape;
}

WindowPlanes planes_of(const PoolingShape& shape) {
  const std::int64_t planes = shape.batch * shape.channels;
  const std::int64_t src_plane = shape.src_h * shape.src_w, dst_plane = shape.dst_h * shape.dst_w;
  return {planes * src_plane, planes * dst_plane, Divisor(src_plane), Divisor(dst_plane),
          PoolingWindows(without_padding(shape))};
}

bool has_windows(const PoolingShape& shape) {
  return shape.batch * shape.channels * shape.dst_h * shape.dst_w > 0 &&
         shape.src_h * shape.src_w > 0;
}

template <class Share>
void queue_gradient(Queue& queue, const PoolingShape& shape, const Share& share, float* src_grad) {
  if (!has_windows(shape)) return;
  const WindowPlanes planes = planes_of(shape);
  launch(queue, grid_for(queue, planes.src_count),
         WindowGradientKernel<Share>{planes, share, src_grad});
}

}  // namespace

void sample_windows(Queue& queue, const PoolingShape& shape, std::uint64_t seed, const float* src,
                    float* dst, float* winners) {
  if (!has_windows(shape)) return;
  const WindowPlanes planes = planes_of(shape);
  launch(queue, grid_for(queue, planes.dst_count),
         SampleKernel{planes, queue.driver.vary(seed), seed, src, dst, winners});
}

void sample_windows_backward(Queue& queue, const PoolingShape& shape, const float* winners,
                             const float* dst_grad, float* src_grad) {
  queue_gradient(queue, shape, SampledShare{winners, dst_grad}, src_grad);
}

void weigh_windows(Queue& queue, const PoolingShape& shape, const float* src, float* dst) {
  if (!has_windows(shape)) return;
  const WindowPlanes planes = planes_of(shape);
  launch(queue, grid_for(queue, planes.dst_count), WeighKernel{planes, src, dst});
}

void weigh_windows_backward(Queue& queue, const PoolingShape& shape, const float* src,
                            const float* dst, const float* dst_grad, float* src_grad) {
  queue_gradient(queue, shape, WeighedShare{src, dst, dst_grad}, src_grad);
}

}  // namespace speedo::gpu
