#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <speedo/backend/backend.hpp>

namespace speedo {

// One backend under test with memory for a test's arrays.
class Workbench {
 public:
  explicit Workbench(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  Backend& backend() { return *backend_; }
  float* put(const std::vector<float>& values);
  // An array of `count` NaNs: an operation that fails to write, or reads what it should not, shows.
  float* blank(std::int64_t count);
  std::vector<float> get(const float* source, std::int64_t count);

  // The same with plain values of an array in any layout. The padding of an array that is put holds
  // zeros; get_array() requires as much of what an operation wrote.
  float* put_array(const ArrayShape& shape, Layout layout, const std::vector<float>& plain);
  float* blank_array(const ArrayShape& shape, Layout layout);
  std::vector<float> get_array(const ArrayShape& shape, Layout layout, const float* source);

 private:
  std::unique_ptr<Backend> backend_;
  std::vector<Buffer> buffers_;
};

// The layouts that an array of so many channels can have.
std::vector<Layout> layouts_of(std::int64_t channels);

// The counts of threads that are tried: 1, 2 and 3; 2 alone on GPUs and their doubles, and, but for
// long runs, under --cpu-isa and --deferred.
std::vector<int> thread_counts();

// Runs `run` on the reference backend and on the chosen backend with each of thread_counts(), and
// requires max|a - b| <= tolerance x max|reference| of what it returns. Tolerance 0: exactly equal.
using Run = std::function<std::vector<float>(Workbench&)>;
void require_conforming(double tolerance, const Run& run);
// What the reference backend gave the first of several runs that are all to give the same.
using Expected = std::optional<std::vector<float>>;
void require_conforming(double tolerance, const Run& run, Expected& expected);
// Likewise, and, where all counts of threads are tried, also with each lesser instruction set that
// our vector kernels are compiled for.
void require_conforming_vectors(double tolerance, const Run& run);

// Values that are different, of both signs, and the same at every call of a run with the same
// arguments.
std::vector<float> test_values(std::int64_t count, float low = -1.0F, float high = 1.0F,
                               std::uint64_t seed = 1);
inline std::vector<float> test_values(const ArrayShape& shape, float low = -1.0F, float high = 1.0F,
                                      std::uint64_t seed = 1) {
  return test_values(shape.storage_count({}), low, high, seed);
}

// A convolution in plain layouts, without padding, dilation or groups; the same stride on all axes.
ConvolutionShape convolution_shape(std::int64_t batch, std::int64_t channels, std::int64_t outputs,
                                   std::vector<std::int64_t> src, std::vector<std::int64_t> kernel,
                                   std::int64_t stride);

// Both, one after the other.
std::vector<float> join(std::vector<float> first, const std::vector<float>& second);

}  // namespace speedo
