#pragma once

#include <algorithm>
#include <cstdint>

namespace speedo {

// What losses are multiplied with where gradients are computed in numbers of a narrow range, so
// that small ones do not vanish: as large as can be. It is halved when a gradient is beyond that
// range, and doubled after so many steps in a row in which none was. A power of two: it changes no
// digit.
class DynamicLossScale {
 public:
  static constexpr float kFirst = 65536.0F, kMost = 16777216.0F;
  static constexpr std::int64_t kGrowsAfter = 2000;

  float value() const { return value_; }
  void succeed() {
    if (++good_ < kGrowsAfter) return;
    good_ = 0;
    value_ = std::min(2.0F * value_, kMost);
  }
  // False: it is 1, and the step's own numbers are at fault.
  bool overflow() {
    good_ = 0;
    if (value_ <= 1.0F) return false;
    value_ /= 2.0F;
    return true;
  }
  // How many steps may succeed before it changes.
  std::int64_t until_growth() const { return kGrowsAfter - good_; }

 private:
  float value_ = kFirst;
  std::int64_t good_ = 0;
};

}  // namespace speedo
