#include "gpu/agreement.hpp"

#include <cmath>
#include <limits>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"
#include "support/reference/reference_layout.hpp"

namespace speedo::gpu {
namespace {

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

Trial::Trial() : reference_(make_reference_backend()) {}

Trial::Trial(std::int64_t blocks_max, std::int64_t shift) : shift_(shift) {
  auto queue = Queue::make(driver_, driver_.create_stream());
  REQUIRE(queue.has_value());
  queue_ = std::make_unique<Queue>(std::move(*queue));
  queue_->blocks_max = blocks_max;
}

Trial::~Trial() {
  queue_.reset();
  for (void* memory : taken_) driver_.free(memory);
}

void Trial::run(const std::function<void(Backend&)>& on_reference,
                const std::function<void(Queue&)>& on_queue) {
  if (reference_) return on_reference(*reference_);
  on_queue(*queue_);
}

void* Trial::take(std::size_t bytes) {
  const auto memory = driver_.allocate(bytes);
  REQUIRE(memory.has_value());
  taken_.push_back(*memory);
  return *memory;
}

float* Trial::put(const std::vector<float>& values) {
  const auto shift = static_cast<std::size_t>(shift_);
  float* const first =
      static_cast<float*>(take((values.size() + shift + 1) * sizeof(float))) + shift;
  std::copy(values.begin(), values.end(), first);
  return first;
}

float* Trial::blank(std::int64_t count) {
  return put(
      std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN()));
}

std::vector<float> Trial::get(const float* from, std::int64_t count) const {
  return {from, from + count};
}

float* Trial::put_array(const ArrayShape& shape, Layout layout, const std::vector<float>& plain) {
  std::vector<float> values(static_cast<std::size_t>(shape.storage_count(layout)));
  write_plain(shape, layout, plain.data(), values.data());
  return put(values);
}

float* Trial::blank_array(const ArrayShape& shape, Layout layout) {
  return blank(shape.storage_count(layout));
}

std::vector<float> Trial::get_array(const ArrayShape& shape, Layout layout,
                                    const float* from) const {
  std::vector<float> plain = read_plain(shape, layout, from);
  const std::vector<float> values = get(from, shape.storage_count(layout));
  std::vector<float> cleared(values.size());
  write_plain(shape, layout, plain.data(), cleared.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_same = values[i] == cleared[i] || (values[i] != values[i] && cleared[i] != 0.0F);
    if (!is_same) FAIL("padding at " << i << " holds " << values[i]);
  }
  return plain;
}

void require_agreement(double tolerance, const std::function<std::vector<float>(Trial&)>& run) {
  Trial reference;
  const std::vector<float> expected = run(reference);
  for (const std::int64_t blocks : {16384, 2}) {
    for (const std::int64_t shift : {0, 1}) {
      INFO("at most " << blocks << " blocks, arrays moved by " << shift);
      Trial trial(blocks, shift);
      require_near(tolerance, run(trial), expected);
    }
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

std::vector<float> joined(std::vector<float> first, const std::vector<float>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace speedo::gpu
