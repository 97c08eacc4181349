#pragma once

#include <cstdint>

#include <speedo/backend/layout.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/divisor.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {

// The channels of the elements at a place, by the place of their values in arrays of all channels.
template <class At>
struct ChannelsAt {
  At values;
  bool exist;  // false in the padding, where the place is channel 0's

  // Of a null array 0.
  SPEEDO_HOST_DEVICE auto load(const float* from) const {
    using Values = decltype(values.load(from));
    return from == nullptr ? Values{} : values.load(from);
  }
  // f(values...) of each element; 0 in the padding.
  template <class F, class... Values>
  SPEEDO_HOST_DEVICE auto each(const F& f, Values... of) const {
    using Results = decltype(gpu::each(f, of...));
    return exist ? gpu::each(f, of...) : Results{};
  }
};

// The place of a value that four elements share.
struct SharedAt {
  std::int64_t i;

  SPEEDO_HOST_DEVICE Floats4 load(const float* from) const {
    const float value = from[i];
    return {value, value, value, value};
  }
};

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
        are_neighbours_(layout.block % 4 == 0 && shape.channels % 4 == 0),
        are_one_(layout.block == 1 && shape.spatial % 4 == 0),
        type_(layout.type) {}

  SPEEDO_HOST_DEVICE std::int64_t count() const { return count_; }
  // Whether four elements from an aligned one on are of one channel, or of four neighbours whose
  // values in these arrays of all channels can be loaded at once.
  template <class... Arrays>
  bool has_fours(const Arrays*... per_channel) const {
    return are_one_ || (are_neighbours_ && are_aligned(per_channel...));
  }

  // Calls body(place, ChannelsAt of the place) for all elements divided over all lanes; by fours
  // where has_fours() of the arrays that the body loads values of channels from.
  template <class Body>
  SPEEDO_HOST_DEVICE void for_each(const Lane& lane, bool by_fours, const Body& body) const {
    with_type(type_, [&](auto is) { for_each_of<decltype(is)::value>(lane, by_fours, body); });
  }

 private:
  template <ElementType kType, class Body>
  SPEEDO_HOST_DEVICE void for_each_of(const Lane& lane, bool by_fours, const Body& body) const {
    const std::int64_t each = by_fours ? 4 : 1;
    for (std::int64_t i = each * lane.first(); i < count_; i += each * lane.stride()) {
      const std::int64_t c = channel(i);
      const bool exist = c < channels_;
      const std::int64_t first = exist ? c : 0;
      if (!by_fours) {
        body(OneAt<kType>{i}, ChannelsAt<OneAt<>>{{first}, exist});
      } else if (are_one_) {
        body(FourAt<kType>{i}, ChannelsAt<SharedAt>{{c}, true});
      } else {
        body(FourAt<kType>{i}, ChannelsAt<FourAt<>>{{first}, exist});
      }
    }
  }

  // Of an element; in the padding the number of channels, or more.
  SPEEDO_HOST_DEVICE std::int64_t channel(std::int64_t i) const {
    if (blocks_.value() == 1) return block_.remainder(i);
    const std::int64_t area = area_.quotient(i);
    return blocks_.remainder(area) * block_.value() + block_.remainder(i);
  }

  std::int64_t channels_, count_;
  Divisor block_, blocks_, area_;
  bool are_neighbours_, are_one_;
  ElementType type_;
};

// Where an array's elements lie in plain order.
class PlainIndex {
 public:
  // Requires: the array has elements.
  PlainIndex(const ArrayShape& shape, Layout layout)
      : channels_(shape.channels),
        block_(layout.block),
        blocks_(layout.channels(shape.channels) / layout.block),
        spatial_(shape.spatial) {}

  // Of element i; in the padding -1.
  SPEEDO_HOST_DEVICE std::int64_t at(std::int64_t i) const {
    if (block_.value() == 1) return i;
    const std::int64_t row = block_.quotient(i), area = spatial_.quotient(row);
    const std::int64_t sample = blocks_.quotient(area);
    const std::int64_t c =
        (area - sample * blocks_.value()) * block_.value() + (i - row * block_.value());
    if (c >= channels_) return -1;
    return (sample * channels_ + c) * spatial_.value() + row - area * spatial_.value();
  }

 private:
  std::int64_t channels_;
  Divisor block_, blocks_, spatial_;
};

}  // namespace speedo::gpu
