#include "gpu/library_bench.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo::gpu {
namespace {

// The driver's double looks at all of it in every call.
constexpr std::size_t kBlasBytes = std::size_t{16} << 10U;

template <class Functions>
Functions changed(Functions functions, void (*change)(Functions&)) {
  if (change != nullptr) change(functions);
  return functions;
}

}  // namespace

LibraryBench::LibraryBench(const LibraryOptions& options)
    : driver_(log_, options.driver),
      cublas_(driver_),
      cudnn_(driver_),
      stream_(driver_.create_stream()) {
  auto queue = Queue::make(driver_, stream_);
  REQUIRE(queue.has_value());
  queue_ = std::make_unique<Queue>(std::move(*queue));
  workspace_ = std::make_unique<Workspace>(driver_, stream_);
  auto blas = make_cublas_lt(changed(test::CublasDouble::functions(), options.change_cublas),
                             {options.dnn.arithmetic, kBlasBytes});
  REQUIRE(blas.has_value());
  blas_ = std::move(*blas);
  workspace_->reserve(blas_->workspace_bytes());
  auto dnn = make_cudnn(changed(test::CudnnDouble::functions(), options.change_cudnn), stream_,
                        options.dnn);
  REQUIRE(dnn.has_value());
  dnn_ = std::move(*dnn);
}

LibraryBench::~LibraryBench() {
  driver_.synchronize(stream_);
  for (void* memory : taken_) driver_.free(memory);
  workspace_.reset();
  queue_.reset();
  blas_.reset();
  dnn_.reset();
  driver_.destroy(stream_);
}

float* LibraryBench::put(const std::vector<float>& values, std::int64_t shift) {
  const auto floats = static_cast<std::int64_t>(values.size());
  auto memory = driver_.allocate(static_cast<std::size_t>(floats + shift + 1) * sizeof(float));
  REQUIRE(memory.has_value());
  taken_.push_back(*memory);
  float* const first = static_cast<float*>(*memory) + shift;
  driver_.copy(stream_, first, values.data(), values.size() * sizeof(float));
  driver_.synchronize(stream_);
  return first;
}

float* LibraryBench::blank(std::int64_t count, std::int64_t shift) {
  return put(std::vector<float>(static_cast<std::size_t>(count),
                                std::numeric_limits<float>::quiet_NaN()),
             shift);
}

std::vector<float> LibraryBench::get(const float* source, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  driver_.copy(stream_, values.data(), source, values.size() * sizeof(float));
  driver_.synchronize(stream_);
  return values;
}

double energy(const std::vector<float>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

double squared_error(const std::vector<float>& got, const std::vector<float>& expected,
                     double added) {
  REQUIRE(got.size() == expected.size());
  double wrong = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = double{got[i]} - expected[i];
    wrong += difference * difference;
  }
  return wrong == 0.0 ? 0.0 : wrong / (energy(expected) + added);
}

void require_close(double tolerance, const std::vector<float>& got,
                   const std::vector<float>& expected, double added) {
  REQUIRE(squared_error(got, expected, added) <= tolerance);
}

std::vector<float> library_values(std::int64_t count, std::uint64_t seed) {
  Random random(test::varied(seed));
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(random.uniform(-1.0F, 1.0F));
  return values;
}

}  // namespace speedo::gpu
