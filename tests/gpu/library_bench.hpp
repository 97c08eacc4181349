#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <speedo/backend/operations.hpp>

#include "gpu/cudnn/dnn.hpp"
#include "gpu/gemm/gemm.hpp"
#include "support/gpu/cublas_double.hpp"
#include "support/gpu/cudnn_double.hpp"

namespace speedo::gpu {

// What a bench's libraries are asked with.
struct LibraryOptions {
  DnnOptions dnn = {};
  test::RecordingOptions driver = {};
  // Null: the doubles'. Others lie, or plant a fault.
  void (*change_cublas)(CublasLtFunctions&) = nullptr;
  void (*change_cudnn)(CudnnFunctions&) = nullptr;
};

// A device without a device, its libraries without libraries, and memory for a test's arrays.
class LibraryBench {
 public:
  explicit LibraryBench(const LibraryOptions& options = {});
  ~LibraryBench();
  LibraryBench(const LibraryBench&) = delete;
  LibraryBench& operator=(const LibraryBench&) = delete;

  // `shift`: floats by which the array begins behind an aligned place.
  float* put(const std::vector<float>& values, std::int64_t shift = 0);
  // NaNs.
  float* blank(std::int64_t count, std::int64_t shift = 0);
  // Waits for what was queued.
  std::vector<float> get(const float* source, std::int64_t count);

  Blas& blas() { return *blas_; }
  Dnn& dnn() { return *dnn_; }
  Queue& queue() { return *queue_; }
  Workspace& workspace() { return *workspace_; }
  GemmContext products() { return {*queue_, *blas_, *workspace_}; }
  test::RecordingDriver& driver() { return driver_; }
  test::CublasDouble& cublas() { return cublas_; }
  test::CudnnDouble& cudnn() { return cudnn_; }
  // What was found wrong so far.
  std::vector<std::string> violations() const { return log_->violations(); }
  bool found(const std::string& word) const { return log_->has(word); }
  // It outlives the bench, whose end may add to it.
  std::shared_ptr<test::CallLog> shared_log() const { return log_; }

 private:
  std::shared_ptr<test::CallLog> log_ = std::make_shared<test::CallLog>();
  test::RecordingDriver driver_;
  test::CublasDouble cublas_;
  test::CudnnDouble cudnn_;
  StreamHandle stream_;
  std::vector<void*> taken_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<Blas> blas_;
  std::unique_ptr<Dnn> dnn_;
};

// Requires that squared_error() <= tolerance.
void require_close(double tolerance, const std::vector<float>& got,
                   const std::vector<float>& expected, double added = 0.0);
// Sum (a - b)^2 / (sum b^2 + added). `added`: energy() of what was added to results that had been
// rounded by then, as that may leave nearly nothing but their errors.
double squared_error(const std::vector<float>& got, const std::vector<float>& expected,
                     double added = 0.0);
// The sum of the squares.
double energy(const std::vector<float>& values);

// The tolerance of the products of floats.
inline constexpr double kProductError = 1e-6;

// Different values of both signs.
std::vector<float> library_values(std::int64_t count, std::uint64_t seed);

}  // namespace speedo::gpu
