#pragma once

#include <cstdint>
#include <vector>

#include <speedo/backend/operations.hpp>

namespace speedo::cpu {

// The elements of a window: where they lie in a frame and in the plane.
struct WindowWalk {
  std::int64_t elements;
  const std::int64_t* offsets;
  const std::int32_t* places;
};

// How the windows of one plane are walked so that the inner loop is long, dense and free of
// borders.
//
// The plane is copied into a frame that holds every window whole, its outside filled with a neutral
// value. With strides, the frame is split into one part per remainder of row and column index by
// the stride: neighbouring outputs then read neighbouring elements of a part, whatever the stride.
// Output (y, x) of the walk is number y * pitch + x, and its window element k lies at that number
// plus offsets[k]. What lies between two output rows is computed and not used.
struct PlanePlan {
  explicit PlanePlan(const PoolingShape& shape);

  PoolingShape shape;                 // with steps of 1 where there is a single window
  std::int64_t stride_w = 1;          // as it was
  bool framed = false;                // whether the copy is needed
  std::int64_t part_rows = 0;         // of each part of the frame
  std::int64_t pitch = 0;             // of the rows of a part, and of the results
  std::int64_t frame_floats = 0;      // length of a frame
  std::int64_t result_count = 0;      // length of the results
  std::vector<std::int64_t> offsets;  // of the window's elements, in row order
  std::vector<std::int32_t> places;   // of the same in the plane, from the window's first element

  // Where the first window of an output row begins in the plane; negative in the padding.
  std::int64_t row_start(std::int64_t y) const {
    return (y * shape.stride_h - shape.pad_h) * shape.src_w - shape.pad_w;
  }
  WindowWalk walk() const {
    return {static_cast<std::int64_t>(offsets.size()), offsets.data(), places.data()};
  }
};

// Copies a plane into a frame, or the frame's inner part back into a plane.
void fill_frame(const PlanePlan& plan, float outside, const float* src, float* frame);
void read_frame(const PlanePlan& plan, const float* frame, float* src);

// Maximum of each window, and (unless `place` is null) where in the window its first element in row
// order is, or -1 if no element is above -FLT_MAX.
void max_windows(const PlanePlan& plan, const float* frame, float* best, std::int32_t* place);
// The winners of a plane's outputs as indices in the plane, all ones for -1. `places`: what
// max_windows() wrote, and room for a whole vector behind it.
void plane_winners(const PlanePlan& plan, const std::int32_t* places, std::uint16_t* winners);
void plane_winners(const PlanePlan& plan, const std::int32_t* places, std::uint32_t* winners);
// Sum of each window.
void sum_windows(const PlanePlan& plan, const float* frame, float* sum);
// Adds each result to all elements of its window.
void spread_windows(const PlanePlan& plan, const float* value, float* frame);

}  // namespace speedo::cpu
