#include "backend/conformance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <speedo/base/random.hpp>

#include "cpu/cpu_backend.hpp"
#include "support/catch.hpp"
#include "support/reference_backend.hpp"

namespace speedo {

float* Device::put(const std::vector<float>& values) {
  auto buffer = backend_->allocate(std::max<std::size_t>(values.size(), 1) * sizeof(float));
  REQUIRE(buffer.has_value());
  buffers_.push_back(std::move(*buffer));
  backend_->upload(buffers_.back().as_floats(), values);
  return buffers_.back().as_floats();
}

float* Device::blank(std::int64_t count) {
  return put(
      std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN()));
}

std::vector<float> Device::get(const float* source, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  backend_->download(values, source);
  return values;
}

void require_conforming(double tolerance, const Run& run) {
  Device reference(make_reference_backend());
  const std::vector<float> expected = run(reference);
  double magnitude = 0.0;
  for (const float value : expected) {
    REQUIRE(std::isfinite(value));
    magnitude = std::max(magnitude, std::fabs(double{value}));
  }
  for (const int threads : {1, 2, 3}) {
    Device device(make_cpu_backend(threads));
    const std::vector<float> got = run(device);
    REQUIRE(got.size() == expected.size());
    double worst = 0.0;
    std::size_t where = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double difference = std::fabs(double{got[i]} - expected[i]);
      const double bounded = std::isnan(difference) ? HUGE_VAL : difference;
      if (bounded > worst) worst = bounded, where = i;
    }
    INFO("threads " << threads << ", worst at " << where);
    REQUIRE(worst <= tolerance * magnitude);
  }
}

std::vector<float> test_values(std::int64_t count, float low, float high, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(random.uniform(low, high));
  return values;
}

}  // namespace speedo
