#pragma once

#include <cstdint>

#include <speedo/backend/element_type.hpp>
#include <speedo/base/round_up.hpp>

namespace speedo {

// How an array of N x C x positions (H x W, ...) lies in memory, and what its elements are.
// Channels are cut into blocks; a block's positions follow one another, and at each position the
// block's channels lie side by side:
//
//   [N][ceil(C / block)][positions][block]
//
// block 1 is Caffe's plain order, block C is the order "channels last" (NHWC). Where block does not
// divide C, the last block is padded; the padding holds zeros, and every operation keeps it so.
struct Layout {
  std::int64_t block = 1;
  ElementType type = ElementType::kFloat32;

  // As Caffe has it: plain order, of float32.
  bool is_plain() const { return block == 1 && type == ElementType::kFloat32; }
  bool is_padded(std::int64_t channels) const { return channels % block != 0; }
  // Channels with padding.
  std::int64_t channels(std::int64_t channels) const { return round_up(channels, block); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

// An N x C x positions array.
struct ArrayShape {
  std::int64_t batch = 0, channels = 0, spatial = 1;

  // Elements in memory, with padding.
  std::int64_t storage_count(Layout layout) const {
    return batch * layout.channels(channels) * spatial;
  }
  // The memory that they take, in floats.
  std::int64_t storage_floats(Layout layout) const {
    return Elements{storage_count(layout), layout.type}.memory_floats();
  }
};

// An array whose channels Backend's operations tell apart.
struct ChannelView {
  ArrayShape shape;
  Layout layout;
};

// The layout that a backend prefers for a whole net, from which each tensor's follows.
// The last one has bfloat16 elements.
enum class LayoutKind { kPlain, kBlocked8, kBlocked16, kChannelsLast, kChannelsLastBfloat16 };

inline Layout layout_of(LayoutKind kind, std::int64_t channels) {
  switch (kind) {
    case LayoutKind::kPlain: break;
    case LayoutKind::kBlocked8: return {8};
    case LayoutKind::kBlocked16: return {16};
    case LayoutKind::kChannelsLast: return {channels};
    case LayoutKind::kChannelsLastBfloat16: return {channels, ElementType::kBfloat16};
  }
  return {};
}

}  // namespace speedo
