#pragma once

#include <cmath>

#include "gpu/launch/kernel.hpp"

namespace speedo::gpu {

// a b + c as the CPU's vector loops round it, so that a rule or a mean has the same bits on both:
// once, where processors fuse the two, else the product and the sum apart (GpuOptions::fuses).
struct MultiplyAdd {
  bool is_fused = true;

  SPEEDO_HOST_DEVICE float operator()(float a, float b, float c) const {
    return is_fused ? std::fma(a, b, c) : a * b + c;
  }
};

}  // namespace speedo::gpu
