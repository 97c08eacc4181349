#pragma once

#include <cstdint>
#include <memory>

#include "gpu/cublas/cublas_lt.hpp"
#include "support/gpu/recording_driver.hpp"

namespace speedo::test {

// cuBLASLt without a device: products are computed by plain loops from what the descriptors say,
// when the driver's stream runs. What is wrong with a call goes into the driver's log: handles that
// are gone or were never there, descriptors that do not fit one another, an algorithm of another
// problem or for better aligned operands, working memory that is too small, operands that leave
// their memory, handles that are left. One at a time.
class CublasDouble {
 public:
  // `driver` outlives it.
  explicit CublasDouble(RecordingDriver& driver);
  ~CublasDouble();
  CublasDouble(const CublasDouble&) = delete;
  CublasDouble& operator=(const CublasDouble&) = delete;

  // To be called while it lives; a test may put others in the place of some.
  static gpu::CublasLtFunctions functions();

  std::int64_t searches() const;  // how often an algorithm was asked for
  std::int64_t products() const;  // how many were queued
  // From now on algorithms take so much working memory, as far as they may.
  void set_wanted_bytes(std::size_t bytes);
  // From now on there is no algorithm.
  void lack_algorithms();

  class State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace speedo::test
