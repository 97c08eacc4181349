#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace speedo {

// The mean of the last `window` losses, updated as Caffe does it: in float, from the mean before.
// Rounding then leaves it outside of the losses, below 0 too; there it is the nearest of them.
class SmoothedLoss {
 public:
  explicit SmoothedLoss(std::size_t window) : window_(window) {}

  void add(float loss) {
    if (losses_.size() < window_) {
      losses_.push_back(loss);
      const auto count = static_cast<float>(losses_.size());
      mean_ = (mean_ * (count - 1.0F) + loss) / count;
      return;
    }
    mean_ += (loss - losses_[oldest_]) / static_cast<float>(window_);
    losses_[oldest_] = loss;
    oldest_ = (oldest_ + 1) % window_;
  }
  float value() const {
    if (losses_.empty()) return mean_;
    const auto [least, most] = std::minmax_element(losses_.begin(), losses_.end());
    return std::max(std::min(mean_, *most), *least);  // in this order a NaN stays
  }

 private:
  std::size_t window_;
  std::size_t oldest_ = 0;
  std::vector<float> losses_;
  float mean_ = 0.0F;
};

}  // namespace speedo
