#pragma once

#include <cstdint>

#include <speedo/backend/layout.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/divisor.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {

// An array of any layout as kernels see it: the channel of each element.
class ChannelIndex {
 public:
  // Requires: the array has elements.
  ChannelIndex(const ArrayShape& shape, Layout layout)
      : channels_(shape.channels),
        count_(shape.storage_count(layout)),
        block_(layout.block),
        blocks_(layout.channels(shape.channels) / layout.block),
        area_(shape.spatial * layout.block),
        four_channels_(layout.block % 4 == 0),
        has_fours_(four_channels_ || (layout.block == 1 && shape.spatial % 4 == 0)) {}

  SPEEDO_HOST_DEVICE std::int64_t count() const { return count_; }
  // Whether four elements from an aligned one on are of one channel, or of four neighbours.
  bool has_fours() const { return has_fours_; }

  // Of an element; in the padding the number of channels, or more.
  SPEEDO_HOST_DEVICE std::int64_t channel(std::int64_t i) const {
    if (blocks_.value() == 1) return block_.remainder(i);
    const std::int64_t area = area_.quotient(i);
    return blocks_.remainder(area) * block_.value() + block_.remainder(i);
  }

  // f(channel, values...) of the elements at a place; 0 in the padding.
  template <class F, class... Values>
  SPEEDO_HOST_DEVICE float each(OneAt at, const F& f, Values... values) const {
    const std::int64_t c = channel(at.i);
    return c < channels_ ? f(c, values...) : 0.0F;
  }
  template <class F, class... Values>
  SPEEDO_HOST_DEVICE Floats4 each(FourAt at, const F& f, Values... values) const {
    const std::int64_t c = channel(at.i), step = four_channels_ ? 1 : 0;
    return {c < channels_ ? f(c, values.x...) : 0.0F,
            c + step < channels_ ? f(c + step, values.y...) : 0.0F,
            c + 2 * step < channels_ ? f(c + 2 * step, values.z...) : 0.0F,
            c + 3 * step < channels_ ? f(c + 3 * step, values.w...) : 0.0F};
  }

 private:
  std::int64_t channels_, count_;
  Divisor block_, blocks_, area_;
  bool four_channels_, has_fours_;
};

}  // namespace speedo::gpu
