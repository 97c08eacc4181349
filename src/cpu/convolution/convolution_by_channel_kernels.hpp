#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/support/aligned.hpp"

namespace speedo::cpu {

// One axis of a convolution; a row of one element if nothing is said.
struct ChannelAxis {
  std::int64_t src = 1, dst = 1, kernel = 1, stride = 1, pad = 0, dilation = 1;
};

// The convolution of one channel's plane. Its src rows are read and written through phases: row p
// has every stride-th element from p on, so that all steps are between neighbours. Tap k of output
// o is element o + shift of row `phase`.
class ChannelPlane {
 public:
  struct Tap {
    std::int64_t phase, shift, index;
  };

  ChannelPlane(ChannelAxis rows, ChannelAxis columns) : y(rows), x(columns) {
    for (std::int64_t k = 0; k < x.kernel; ++k) {
      const std::int64_t origin = k * x.dilation - x.pad;
      const std::int64_t phase = (origin % x.stride + x.stride) % x.stride;
      taps.push_back({phase, (origin - phase) / x.stride, k});
    }
    std::ranges::stable_sort(taps, {}, &Tap::phase);
    const auto shifts = std::ranges::minmax(taps, {}, &Tap::shift);
    const std::int64_t least = shifts.min.shift, most = shifts.max.shift;
    const std::int64_t longest = phase_count(0);
    margin = std::max<std::int64_t>(0, -least);
    pitch = aligned(margin + std::max(longest, x.dst + std::max<std::int64_t>(0, most)));
    dst_margin = std::max<std::int64_t>(0, most);
    dst_pitch = aligned(dst_margin + std::max(x.dst, longest - least));
    kept_rows = std::min(y.dst, (y.kernel - 1) * y.dilation / y.stride + 2);
  }

  // Elements of a phase's row.
  std::int64_t phase_count(std::int64_t phase) const {
    return phase >= x.src ? 0 : (x.src - phase - 1) / x.stride + 1;
  }
  // Of one src row in phases, and of the dst rows that by_channel_up() keeps.
  std::int64_t scratch_floats() const { return x.stride * pitch + kept_rows * dst_pitch; }

  ChannelAxis y, x;
  std::vector<Tap> taps;  // of a kernel's row, by phase
  std::int64_t margin = 0, pitch = 0;          // zeros before a phase's row; from row to row
  std::int64_t dst_margin = 0, dst_pitch = 0;  // likewise of dst rows
  std::int64_t kept_rows = 0;                  // dst rows that one src row can need
};

// Adds the convolution of `src` to `dst`.
void by_channel_down(const ChannelPlane& plane, const float* src, const float* weights, float* dst,
                     float* scratch);
// Overwrites src_grad.
void by_channel_up(const ChannelPlane& plane, const float* dst_grad, const float* weights,
                   float* src_grad, float* scratch);
// Adds to weights_grad.
void by_channel_weights(const ChannelPlane& plane, const float* src, const float* dst_grad,
                        float* weights_grad, float* scratch);

}  // namespace speedo::cpu
