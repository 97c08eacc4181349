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

  // Null: they are words, or not asked for.
  std::uint8_t* bytes() const { return bytes_; }

  // A tap of -1: none.
  SPEEDO_HOST_DEVICE void set(std::int64_t i, int tap) const {
    if (bytes_ != nullptr) bytes_[i] = static_cast<std::uint8_t>(tap);
    if (words_ != nullptr) words_[i] = static_cast<std::uint32_t>(tap);
  }
  SPEEDO_HOST_DEVICE bool is(std::int64_t i, int tap) const {
    return bytes_ != nullptr ? bytes_[i] == tap : words_[i] == static_cast<std::uint32_t>(tap);
  }

  // Of four neighbours, from the i-th four on: a byte each, or a word each.
  struct Four {
    bool are_bytes;
    std::uint32_t of[4];

    SPEEDO_HOST_DEVICE bool is(int lane, int tap) const {
      const auto wanted = static_cast<std::uint32_t>(tap);
      return are_bytes ? (of[0] >> (8 * lane) & 0xffU) == wanted : of[lane] == wanted;
    }
  };
  SPEEDO_HOST_DEVICE void set_four(std::int64_t i, const int (&taps)[4]) const {
    if (words_ != nullptr) {
      for (int j = 0; j < 4; ++j) words_[4 * i + j] = static_cast<std::uint32_t>(taps[j]);
    }
    if (bytes_ == nullptr) return;
    std::uint32_t all = 0;
    for (int j = 0; j < 4; ++j) all |= (static_cast<std::uint32_t>(taps[j]) & 0xffU) << (8 * j);
    reinterpret_cast<std::uint32_t*>(bytes_)[i] = all;
  }
  SPEEDO_HOST_DEVICE Four four(std::int64_t i) const {
    if (bytes_ != nullptr) return {true, {reinterpret_cast<const std::uint32_t*>(bytes_)[i]}};
    return {false, {words_[4 * i], words_[4 * i + 1], words_[4 * i + 2], words_[4 * i + 3]}};
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
