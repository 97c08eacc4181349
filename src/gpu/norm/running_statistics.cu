#include "gpu/norm/running_statistics.hpp"

#include <algorithm>

#include "gpu/launch/launch.hpp"
#include "gpu/support/multiply_add.hpp"

namespace speedo::gpu {
namespace {

struct RunningStatisticsKernel {
  static constexpr const char* kName = "running_statistics";
  MultiplyAdd multiply_add;
  RunningStatistics of;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.first() == 0) *of.weight = added(1.0F, 1.0F, *of.weight);
    for (std::int64_t c = lane.first(); c < of.channels; c += lane.stride()) {
      of.mean_sum[c] = added(1.0F, of.mean[c], of.mean_sum[c]);
      of.variance_sum[c] = added(of.correction, of.variance[c], of.variance_sum[c]);
    }
  }

 private:
  // A sum of which nothing is left may be NaN.
  SPEEDO_HOST_DEVICE float added(float scale, float value, float sum) const {
    return of.fraction == 0.0F ? scale * value : multiply_add(scale, value, of.fraction * sum);
  }
};

// Rounded as the host rounds it: the scale first.
struct RunningMeansKernel {
  static constexpr const char* kName = "running_means";
  RunningMeans of;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const float scale = *of.weight == 0.0F ? 0.0F : 1.0F / *of.weight;
    for (std::int64_t c = lane.first(); c < of.channels; c += lane.stride()) {
      of.mean[c] = scale * of.mean_sum[c];
      of.variance[c] = scale * of.variance_sum[c];
    }
  }
};

}  // namespace

void add_to_running(Queue& queue, const RunningStatistics& of) {
  launch(queue, grid_for(queue, std::max<std::int64_t>(of.channels, 1)),
         RunningStatisticsKernel{{queue.fuses}, of});
}

void read_running(Queue& queue, const RunningMeans& of) {
  launch(queue, grid_for(queue, std::max<std::int64_t>(of.channels, 1)), RunningMeansKernel{of});
}

}  // namespace speedo::gpu
