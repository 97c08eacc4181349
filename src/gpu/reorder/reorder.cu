#include "gpu/reorder/reorder.hpp"

#include "gpu/launch/launch.hpp"
#include "gpu/support/array_index.hpp"

namespace speedo::gpu {
namespace {

// Threads side by side write side by side; what they read lies apart where the layouts differ.
struct ReorderKernel {
  static constexpr const char* kName = "reorder";
  std::int64_t n;
  ArrayIndex from, to;
  const float* source;
  float* target;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const ArrayIndex::Place place = to.place(i);
      target[i] = place.channel < to.channels() ? source[from.at(place)] : 0.0F;
    }
  }
};

}  // namespace

void reorder(Queue& queue, const ArrayShape& shape, const float* source, Layout from, float* target,
             Layout to) {
  const std::int64_t n = shape.storage_count(to);
  if (n == 0) return;
  launch(queue, grid_for(n),
         ReorderKernel{n, ArrayIndex(shape, from), ArrayIndex(shape, to), source, target});
}

}  // namespace speedo::gpu
