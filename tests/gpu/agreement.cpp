#include "gpu/agreement.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/gpu/stored_elements.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"
#include "support/reference/reference_layout.hpp"

namespace speedo::gpu {
namespace {

// Each value is the next one of bfloat16, whose step is at most this part of it, squared.
constexpr double kNext = 0x1p-14;

std::int64_t count_of(const std::vector<float>& values) {
  return static_cast<std::int64_t>(values.size());
}

void require_near(double tolerance, const std::vector<float>& got,
                  const std::vector<float>& expected) {
  REQUIRE(got.size() == expected.size());
  double error = 0.0, size = 0.0, worst = -1.0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool both_nan = std::isnan(got[i]) && std::isnan(expected[i]);
    if (got[i] == expected[i] || both_nan) {
      if (std::isfinite(expected[i])) size += double{expected[i]} * expected[i];
      continue;
    }
    const double difference = double{got[i]} - expected[i];
    if (std::fabs(difference) < FLT_MIN) continue;
    const double square = std::isfinite(difference) ? difference * difference : HUGE_VAL;
    error += square;
    size += double{expected[i]} * expected[i];
    if (square > worst) worst = square, where = i;
  }
  if (error <= tolerance * size) return;
  FAIL("error " << error / size << ", worst at " << where << " of " << got.size() << ": "
                << got[where] << " for " << expected[where]);
}

}  // namespace

KernelRig::KernelRig(const TrialOptions& options)
    : driver(log, {.seed = options.backwards ? 1U : 0U, .keeps_history = true}) {
  auto made_device = GpuDevice::make(driver, {});
  REQUIRE(made_device.has_value());
  device = std::move(*made_device);
  stream = device->compute_handle();
  auto made = Queue::make(driver, stream);
  REQUIRE(made.has_value());
  queue = std::make_unique<Queue>(std::move(*made));
  queue->blocks_max = options.blocks_max;
}

KernelRig::~KernelRig() {
  queue.reset();
  device.reset();
}

Trial::Trial() : reference_(make_reference_backend()) {}
Trial::Trial(KernelRig& rig, const TrialOptions& options) : rig_(&rig), shift_(options.shift) {}

Trial::~Trial() {
  for (void* memory : taken_) {
    if (rig_ != nullptr) {
      rig_->driver.free(memory);
    } else {
      std::free(memory);
    }
  }
  if (rig_ != nullptr) CHECK(rig_->log->violations() == std::vector<std::string>());
}

void Trial::run(const std::function<void(Backend&)>& on_reference,
                const std::function<void(Queue&)>& on_queue) {
  if (reference_) return on_reference(*reference_);
  on_queue(*rig_->queue);
  rig_->driver.synchronize(rig_->stream);
}

void* Trial::take(std::size_t bytes) {
  if (rig_ != nullptr) {
    const auto memory = rig_->driver.allocate(bytes);
    REQUIRE(memory.has_value());
    taken_.push_back(*memory);
  } else {
    taken_.push_back(std::malloc(bytes));
  }
  return taken_.back();
}

float* Trial::put(const std::vector<float>& values) {
  const auto shift = static_cast<std::size_t>(shift_);
  const std::size_t bytes = values.size() * sizeof(float);
  // An array of nothing has a place too.
  float* const first =
      static_cast<float*>(take(std::max<std::size_t>(bytes + shift * sizeof(float), 1))) + shift;
  if (bytes == 0) return first;
  if (rig_ != nullptr) {
    rig_->driver.copy(rig_->stream, first, values.data(), bytes);
    rig_->driver.synchronize(rig_->stream);
  } else {
    std::memcpy(first, values.data(), bytes);
  }
  return first;
}

float* Trial::blank(std::int64_t count) {
  return put(
      std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN()));
}

std::vector<float> Trial::get(const float* from, std::int64_t count) {
  if (rig_ == nullptr || count == 0) return {from, from + count};
  std::vector<float> values(static_cast<std::size_t>(count));
  rig_->driver.copy(rig_->stream, values.data(), from, values.size() * sizeof(float));
  rig_->driver.synchronize(rig_->stream);
  return values;
}

// The reference keeps what is rounded as floats.
float* Trial::put_elements(const std::vector<float>& values, ElementType type) {
  if (type == ElementType::kFloat32) return put(values);
  has_rounded_ = true;
  const std::vector<float> memory = test::stored_as(values, type);
  return put(rig_ != nullptr ? memory : test::read_elements(memory.data(), count_of(values), type));
}

float* Trial::put_array(const ArrayShape& shape, Layout layout, const std::vector<float>& plain) {
  std::vector<float> values(static_cast<std::size_t>(shape.storage_count(layout)));
  write_plain(shape, layout, plain.data(), values.data());
  return put_elements(values, layout.type);
}

float* Trial::blank_array(const ArrayShape& shape, Layout layout) {
  return put_elements(std::vector<float>(static_cast<std::size_t>(shape.storage_count(layout)),
                                         std::numeric_limits<float>::quiet_NaN()),
                      layout.type);
}

std::vector<float> Trial::get_array(const ArrayShape& shape, Layout layout, const float* from) {
  const std::int64_t count = shape.storage_count(layout);
  const bool is_short = layout.type != ElementType::kFloat32;
  std::vector<float> values = get(from, is_short && rig_ != nullptr ? (count + 1) / 2 : count);
  if (is_short && rig_ == nullptr) values = test::stored_as(values, layout.type);
  if (is_short) values = test::read_elements(values.data(), count, layout.type);
  std::vector<float> plain = read_plain(shape, layout, values.data());
  std::vector<float> cleared(values.size());
  write_plain(shape, layout, plain.data(), cleared.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_same = values[i] == cleared[i] || (values[i] != values[i] && cleared[i] != 0.0F);
    if (!is_same) FAIL("padding at " << i << " holds " << values[i]);
  }
  return plain;
}

void require_agreement(double tolerance, const std::function<std::vector<float>(Trial&)>& run) {
  // What a rig remembers of each trial makes the next one slower.
  constexpr int kTrialsMax = 50;
  static const TrialOptions kOptions[] = {
      {}, {.blocks_max = 2, .backwards = true}, {.blocks_max = 2, .shift = 1}};
  static std::unique_ptr<KernelRig> rigs[std::size(kOptions)];
  Trial reference;
  const std::vector<float> expected = run(reference);
  for (std::size_t i = 0; i < std::size(kOptions); ++i) {
    const TrialOptions& options = kOptions[i];
    INFO("at most " << options.blocks_max << " blocks, arrays moved by " << options.shift
                    << (options.backwards ? ", backwards" : ""));
    if (!rigs[i] || ++rigs[i]->trials > kTrialsMax) rigs[i] = std::make_unique<KernelRig>(options);
    Trial trial(*rigs[i], options);
    const std::vector<float> got = run(trial);
    require_near(trial.has_rounded() ? std::max(tolerance, kNext) : tolerance, got, expected);
  }
}

std::vector<float> drawn(std::int64_t count, float low, float high, std::uint64_t seed) {
  Random random(test::varied(seed));
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(random.uniform(low, high));
  return values;
}

std::vector<std::int64_t> odd_counts() { return {0, 1, 3, 4, 5, 255, 256, 257, 1023, 1025, 5003}; }

std::vector<Layout> all_layouts(std::int64_t channels) { return {{1}, {8}, {16}, {channels}}; }

std::vector<Layout> stored_layouts(std::int64_t channels) {
  std::vector<Layout> layouts = all_layouts(channels);
  layouts.push_back(layout_of(LayoutKind::kChannelsLastBfloat16, channels));
  return layouts;
}

std::vector<float> joined(std::vector<float> first, const std::vector<float>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace speedo::gpu
