#pragma once

#include <cstdint>
#include <vector>

#include <speedo/backend/operations.hpp>

namespace speedo::cpu {

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

  PoolingShape shape;
  bool framed = false;                // whether the copy is needed
  std::int64_t part_rows = 0;         // of each part of the frame
  std::int64_t pitch = 0;             // of the rows of a part, and of the results
  std::int64_t frame_floats = 0;      // length of a frame
  std::int64_t result_count = 0;      // length of the results
  std::vector<std::int64_t> offsets;  // of the window's elements, in row order
  std::vector<std::int32_t> codes;    // ky * src_w + kx of the same elements
};

// Copies a plane into a frame, or the frame's inner part back into a plane.
void fill_frame(const PlanePlan& plan, float outside, const float* src, float* frame);
void read_frame(const PlanePlan& plan, const float* frame, float* src);

// Maximum of each window and the code of its first element in row order, or -1 if no element is
// above -FLT_MAX.
void max_windows(const PlanePlan& plan, const float* frame, float* best, std::int32_t* code);
// Sum of each window.
void sum_windows(const PlanePlan& plan, const float* frame, float* sum);
// Adds each result to all elements of its window.
void spread_windows(const PlanePlan& plan, const float* value, float* frame);

}  // namespace speedo::cpu
