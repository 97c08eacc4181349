#pragma once

#include <cfloat>
#include <cstdint>

#include <speedo/base/random.hpp>

namespace speedo {

// Makes floats of a reference's doubles: the nearest, or with a seed that is not 0 one that is off
// by up to a unit in its last place, as sums in another order and other approximations leave it.
class Rounding {
 public:
  explicit Rounding(std::uint64_t seed) : is_drawn_(seed != 0), random_(seed) {}

  float operator()(double value) {
    if (is_drawn_) value *= 1.0 + double{FLT_EPSILON} * random_.uniform(-1.0F, 1.0F);
    return static_cast<float>(value);
  }

 private:
  bool is_drawn_;
  Random random_;
};

}  // namespace speedo
