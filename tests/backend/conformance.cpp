#include "backend/conformance.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/targets.h>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/long_runs.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"
#include "support/reference/reference_layout.hpp"

namespace speedo {
namespace {

// Holds the vector kernels to one instruction set (0: leaves them the best) for its lifetime.
class VectorIsa {
 public:
  explicit VectorIsa(std::int64_t target) : is_held_(target != 0) {
    if (is_held_) hold(target);
  }
  ~VectorIsa() {
    if (is_held_) hold(0);
  }
  VectorIsa(const VectorIsa&) = delete;
  VectorIsa& operator=(const VectorIsa&) = delete;

 private:
  // Asks the processor again what it has, which takes long in a virtual machine.
  static void hold(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  bool is_held_;
};

// What a run is compared with: an instruction set (0: the best) and a number of threads.
struct Variant {
  std::int64_t target;
  int threads;
};

// Threads divide the work in the same way whatever the instructions and the device are: a run that
// is kept to one of those takes one count of threads, and leaves lesser instructions to others.
bool is_kept() {
  const test::KernelChoice& choice = test::kernel_choice();
  if (choice.gpu || choice.gpu_double) return true;
  return !test::is_long() && (!choice.isa.empty() || choice.deferred);
}

std::vector<Variant> thread_variants() {
  std::vector<Variant> result;
  for (const int threads : thread_counts()) result.push_back({0, threads});
  return result;
}

std::vector<Variant> vector_variants() {
  std::vector<Variant> result = thread_variants();
  if (is_kept()) return result;
  const std::int64_t best = hwy::SupportedTargets();
  for (std::int64_t rest = best & (best - 1) & ~(HWY_SSSE3 | HWY_EMU128); rest != 0;
       rest &= rest - 1) {
    result.push_back({rest & -rest, 2});
  }
  result.push_back({HWY_SCALAR, 2});
  return result;
}

// Of other draws than seed 0's a result may be small all over: what is left of values around one
// when they cancel, as in the slope of a sigmoid that is nearly 1, times a gradient of up to 2.
double measure_of(double magnitude) {
  constexpr double kCancelled = 4e-2;
  return test::fresh_seed() == 0 ? magnitude : std::max(magnitude, kCancelled);
}

void require_close(double tolerance, double magnitude, const std::vector<float>& got,
                   const std::vector<float>& expected) {
  REQUIRE(got.size() == expected.size());
  double worst = 0.0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::fabs(double{got[i]} - expected[i]);
    const double bounded = std::isnan(difference) ? HUGE_VAL : difference;
    if (bounded > worst) worst = bounded, where = i;
  }
  INFO("worst at " << where);
  REQUIRE(worst <= test::tolerated(tolerance) * measure_of(magnitude));
}

void require_variants(double tolerance, const Run& run, const std::vector<Variant>& variants,
                      const std::vector<float>& expected) {
  double magnitude = 0.0;
  bool is_finite = true;
  for (const float value : expected) {
    is_finite = is_finite && std::isfinite(value);
    magnitude = std::max(magnitude, std::fabs(double{value}));
  }
  REQUIRE(is_finite);
  for (const Variant& variant : variants) {
    const VectorIsa isa(variant.target);
    INFO("threads " << variant.threads << ", "
                    << (variant.target == 0 ? "best" : hwy::TargetName(variant.target)));
    Workbench bench(test::make_backend(variant.threads));
    require_close(tolerance, magnitude, run(bench), expected);
  }
}

std::vector<float> on_reference(const Run& run) {
  Workbench reference(make_reference_backend());
  return run(reference);
}

}  // namespace

std::vector<int> thread_counts() {
  if (is_kept()) return {2};
  return {1, 2, 3};
}

float* Workbench::put(const std::vector<float>& values) {
  auto buffer =
      backend_->device().allocate(std::max<std::size_t>(values.size(), 1) * sizeof(float));
  REQUIRE(buffer.has_value());
  buffers_.push_back(std::move(*buffer));
  backend_->device().upload(buffers_.back().as_floats(), values);
  return buffers_.back().as_floats();
}

float* Workbench::blank(std::int64_t count) {
  return put(
      std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN()));
}

std::vector<float> Workbench::get(const float* source, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  backend_->device().download(values, source);
  return values;
}

float* Workbench::put_array(const ArrayShape& shape, Layout layout,
                            const std::vector<float>& plain) {
  if (layout.is_plain()) return put(plain);
  std::vector<float> values(static_cast<std::size_t>(shape.storage_count(layout)));
  write_plain(shape, layout, plain.data(), values.data());
  return put(values);
}

float* Workbench::blank_array(const ArrayShape& shape, Layout layout) {
  return blank(shape.storage_count(layout));
}

std::vector<float> Workbench::get_array(const ArrayShape& shape, Layout layout,
                                        const float* source) {
  const std::vector<float> values = get(source, shape.storage_count(layout));
  if (layout.is_plain()) return values;
  if (const auto at = find_soiled_padding(shape, layout, values.data())) {
    FAIL("padding at " << *at << " holds " << values[static_cast<std::size_t>(*at)]);
  }
  return read_plain(shape, layout, values.data());
}

std::vector<Layout> layouts_of(std::int64_t channels) { return {{1}, {8}, {16}, {channels}}; }

std::vector<float> join(std::vector<float> first, const std::vector<float>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void require_conforming(double tolerance, const Run& run) {
  require_variants(tolerance, run, thread_variants(), on_reference(run));
}
void require_conforming(double tolerance, const Run& run, Expected& expected) {
  if (!expected) expected = on_reference(run);
  require_variants(tolerance, run, thread_variants(), *expected);
}
void require_conforming_vectors(double tolerance, const Run& run) {
  require_variants(tolerance, run, vector_variants(), on_reference(run));
}

ConvolutionShape convolution_shape(std::int64_t batch, std::int64_t channels, std::int64_t outputs,
                                   std::vector<std::int64_t> src, std::vector<std::int64_t> kernel,
                                   std::int64_t stride) {
  ConvolutionShape shape;
  shape.batch = batch, shape.channels = channels, shape.outputs = outputs;
  for (std::size_t i = 0; i < src.size(); ++i) {
    shape.dst_size.push_back((src[i] - kernel[i]) / stride + 1);
  }
  shape.stride.assign(src.size(), stride);
  shape.pad.assign(src.size(), 0);
  shape.dilation.assign(src.size(), 1);
  shape.src_size = std::move(src);
  shape.kernel = std::move(kernel);
  return shape;
}

std::vector<float> test_values(std::int64_t count, float low, float high, std::uint64_t seed) {
  Random random(test::varied(seed));
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(random.uniform(low, high));
  return values;
}

}  // namespace speedo
