#pragma once

#include <cstdint>

#include <speedo/backend/layout.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {

// Where an element of an array stands, and where it lies, in any layout.
class ArrayIndex {
 public:
  struct Place {
    std::int64_t sample, channel, position;
  };

  // Requires: the array has elements.
  ArrayIndex(const ArrayShape& shape, Layout layout)
      : channels_(shape.channels),
        block_(layout.block),
        blocks_(layout.channels(shape.channels) / layout.block),
        area_(shape.spatial * layout.block),
        spatial_(shape.spatial) {}

  SPEEDO_HOST_DEVICE std::int64_t channels() const { return channels_; }
  SPEEDO_HOST_DEVICE std::int64_t spatial() const { return spatial_; }

  // The channel is channels() or more in the padding.
  SPEEDO_HOST_DEVICE Place place(std::int64_t i) const {
    const std::int64_t area = area_.quotient(i), within = i - area * area_.value();
    const std::int64_t position = block_.quotient(within), sample = blocks_.quotient(area);
    return {sample,
            (area - sample * blocks_.value()) * block_.value() + within - position * block_.value(),
            position};
  }
  SPEEDO_HOST_DEVICE std::int64_t at(const Place& place) const {
    const std::int64_t b = block_.quotient(place.channel);
    return ((place.sample * blocks_.value() + b) * spatial_ + place.position) * block_.value() +
           place.channel - b * block_.value();
  }

 private:
  std::int64_t channels_;
  Divisor block_, blocks_, area_;
  std::int64_t spatial_;
};

}  // namespace speedo::gpu
