#pragma once

#include <cstdint>
#include <memory>

#include "gpu/cudnn/cudnn_functions.hpp"
#include "support/gpu/recording_driver.hpp"

namespace speedo::test {

// cuDNN without a device: convolutions are computed by plain loops from what the descriptors say,
// when the driver's stream runs. What is wrong with a call goes into the driver's log: handles that
// are gone or were never there, descriptors that do not fit one another, an algorithm that the
// shape or the precision does not have, working memory that is too small, operands that leave their
// memory, handles that are left. One at a time.
class CudnnDouble {
 public:
  // `driver` outlives it.
  explicit CudnnDouble(RecordingDriver& driver);
  ~CudnnDouble();
  CudnnDouble(const CudnnDouble&) = delete;
  CudnnDouble& operator=(const CudnnDouble&) = delete;

  // To be called while it lives; a test may put others in the place of some.
  static gpu::CudnnFunctions functions();

  std::int64_t rankings() const;  // how often heuristics were asked
  std::int64_t trials() const;    // how often algorithms were tried
  std::int64_t passes() const;    // how many were queued
  std::int64_t fused() const;     // of them, with an activation
  // The most working memory that a queued pass had.
  std::size_t work_bytes_max() const;
  // From now on convolutions of several groups take a hundred times as long as others.
  void slow_groups_down();
  // From now on kernels are loaded when they are first tried, which takes longest; but those of the
  // slowest algorithm are there.
  void load_when_tried();
  // From now on there is no algorithm.
  void lack_algorithms();

  class State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace speedo::test
