#pragma once

#include <cstdint>
#include <vector>

#include <speedo/backend/operations.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// The windows of a convolution as a matrix: row (channel, kernel position), column = output
// position; elements in the padding are zero. Convolution is then one matrix product (Chellapilla
// 2006).
class Im2col {
 public:
  // Rows for the channels of one group.
  explicit Im2col(const ConvolutionShape& shape);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return dst_plane_; }
  std::int64_t src_count() const {
    return channels_ * src_plane_;
  }  // elements of one group's input
  // Whether the matrix is the input itself.
  bool is_identity() const { return identity_; }

  // Writes the matrix of `src`, rows `pitch` elements apart.
  void unfold(const float* src, float* matrix, std::int64_t pitch) const;
  // Adds each element to the place it came from. The matrix is left changed.
  void fold(float* matrix, std::int64_t pitch, float* src) const;
  // Likewise, and leaves it as it is, for which it may take longer.
  void fold(const float* matrix, std::int64_t pitch, float* src) const;

 private:
  // One axis; and, for one kernel position, the outputs [first, last) whose element lies inside.
  struct Axis {
    std::int64_t src, dst, kernel, stride, pad, dilation;
  };
  struct Reach {
    std::int64_t origin, first, last;
  };

  template <class Visit>
  void for_each_row(const Visit& visit) const;
  Reach reach(const Axis& axis, std::int64_t kernel_index) const;
  void unfold_from(std::size_t axis, const Reach* reach, const float* src, float* dst) const;
  template <class Element>
  void fold_from(std::size_t axis, const Reach* reach, Element* dst, float* src) const;

  std::vector<Axis> axes_;                             // at least two
  std::vector<std::int64_t> src_stride_, dst_stride_;  // elements per step along each axis
  std::int64_t channels_ = 0, rows_ = 0, src_plane_ = 1, dst_plane_ = 1;
  bool identity_ = false;
};

// As in Backend.
void unfold(ThreadPool& pool, const ConvolutionShape& shape, const float* src, float* matrices);
void fold(ThreadPool& pool, const ConvolutionShape& shape, const float* matrices, float* src);

}  // namespace speedo::cpu
