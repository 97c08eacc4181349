#pragma once

#include <cstdint>

#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"
#include "gpu/pooling/pooling_windows.hpp"

namespace speedo::gpu {

// Which tap of its window each maximum is, in a byte where that suffices.
class WinnerTaps {
 public:
  static std::int64_t bytes_for(const PoolingWindows& windows) {
    return windows.taps() < kNoneInByte ? 1 : static_cast<std::int64_t>(sizeof(std::uint32_t));
  }
  // `memory`: null, if they are not asked for.
  WinnerTaps(void* memory, const PoolingWindows& windows)
      : bytes_(static_cast<std::uint8_t*>(bytes_for(windows) == 1 ? memory : nullptr)),
        words_(static_cast<std::uint32_t*>(bytes_for(windows) == 1 ? nullptr : memory)) {}

  // A tap of -1: none.
  SPEEDO_HOST_DEVICE void set(std::int64_t i, int tap) const {
    if (bytes_ != nullptr) bytes_[i] = static_cast<std::uint8_t>(tap);
    if (words_ != nullptr) words_[i] = static_cast<std::uint32_t>(tap);
  }
  SPEEDO_HOST_DEVICE bool is(std::int64_t i, int tap) const {
    return bytes_ != nullptr ? bytes_[i] == tap : words_[i] == static_cast<std::uint32_t>(tap);
  }

 private:
  static constexpr std::int64_t kNoneInByte = 255;
  std::uint8_t* bytes_;
  std::uint32_t* words_;
};

// Passes of images in any layout, queued. Requires: the images have elements, and
// PoolingWindows::have_room_for(shape). mask: null, if it is not asked for.
void pool_maxima(Queue& queue, const PoolingShape& shape, const float* src, float* dst,
                 const WinnerTaps& winners, float* mask);
void pool_averages(Queue& queue, const PoolingShape& shape, const float* src, float* dst);
// winners: of averages, anything.
void pool_backward(Queue& queue, const PoolingShape& shape, const WinnerTaps& winners,
                   const float* dst_grad, float* src_grad);

}  // namespace speedo::gpu
