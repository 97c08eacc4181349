#pragma once

#include <cstddef>
#include <vector>

namespace speedo {

// The mean of the last `window` losses, updated as Caffe does it: in float, from the mean before.
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
  float value() const { return mean_; }

 private:
  std::size_t window_;
  std::size_t oldest_ = 0;
  std::vector<float> losses_;
  float mean_ = 0.0F;
};

}  // namespace speedo
