// Work on many small arrays that one kernel does: against the same, one array after another.

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "gpu/agreement.hpp"
#include "gpu/elementwise/elementwise.hpp"
#include "support/catch.hpp"
#include "support/gpu/gpu_double.hpp"

namespace speedo::gpu {
namespace {

// So many, of sizes that are less than a piece, just as large, and several; each has its own rate.
std::vector<UpdateRange> ranges_of(int count, std::int64_t alignment) {
  const std::int64_t sizes[] = {64, 1, 4096, 0, 7, 4097, 256, 8200, 3};
  std::vector<UpdateRange> ranges;
  std::int64_t end = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t first = (end + alignment - 1) / alignment * alignment;
    const auto own = static_cast<float>(i % 5);
    ranges.push_back({first, sizes[i % 9], 0.1F + own, 1e-3F * own, i % 3 == 0 ? 0.02F : 0.0F});
    end = first + sizes[i % 9];
  }
  return ranges;
}

TEST_CASE("an update of many ranges is that of each, to the bit") {
  const int count = GENERATE(0, 1, 3, 96, 97, 200);
  const std::int64_t alignment = GENERATE(16, 1);
  const bool steps = GENERATE(false, true);
  CAPTURE(count, alignment, steps);
  const std::vector<UpdateRange> ranges = ranges_of(count, alignment);
  const std::int64_t n = ranges.empty() ? 5 : ranges.back().first + ranges.back().count + 5;
  const SgdStep step{9.0F, 0.9F, 0.5F, 9.0F, 9.0F, steps ? 1.0F : -1.0F};
  require_agreement(kTight, [&](Trial& trial) {
    float* weights = trial.put(drawn(n, -1, 1, 1));
    float* history = trial.put(drawn(n, -1, 1, 2));
    float* grad = trial.put(drawn(n, -1, 1, 3));
    trial.run(
        [&](Backend& backend) {
          if (steps) return backend.sgd_step_ranges(ranges, step, weights, history, grad);
          backend.sgd_update_ranges(ranges, step, weights, history, grad);
        },
        [&](Queue& queue) {
          if (steps) return sgd_step(queue, ranges, step, weights, history, grad);
          sgd_update(queue, ranges, step, weights, history, grad);
        });
    return joined(joined(trial.get(weights, n), trial.get(history, n)), trial.get(grad, n));
  });
}

TEST_CASE("an adaptive update of many ranges is that of each") {
  const auto kind = GENERATE(AdaptiveKind::kRmsProp, AdaptiveKind::kAdam);
  const bool steps = GENERATE(false, true);
  const std::vector<UpdateRange> ranges = ranges_of(100, 16);
  const std::int64_t n = ranges.back().first + ranges.back().count;
  const AdaptiveStep step{
      kind, {9.0F, 0.9F, 0.5F, 9.0F, 9.0F, steps ? 1.0F : -1.0F}, 0.95F, 1e-6F};
  require_agreement(1e-9, [&](Trial& trial) {
    float* weights = trial.put(drawn(n, -1, 1, 1));
    float* first = trial.put(drawn(n, 0, 1, 2));
    float* second = kind == AdaptiveKind::kAdam ? trial.put(drawn(n, 0, 1, 4)) : nullptr;
    float* grad = trial.put(drawn(n, -1, 1, 3));
    const AdaptiveHistories histories{first, second};
    trial.run(
        [&](Backend& backend) {
          if (steps) return backend.adaptive_step_ranges(ranges, step, weights, histories, grad);
          backend.adaptive_update_ranges(ranges, step, weights, histories, grad);
        },
        [&](Queue& queue) {
          if (steps) return adaptive_step(queue, ranges, step, weights, histories, grad);
          adaptive_update(queue, ranges, step, weights, histories, grad);
        });
    const auto values = joined(joined(trial.get(weights, n), trial.get(grad, n)),
                               trial.get(first, n));
    return second == nullptr ? values : joined(values, trial.get(second, n));
  });
}

TEST_CASE("all ranges that a kernel's arguments hold are updated by one kernel") {
  KernelRig rig({});
  Trial trial(rig, {});
  const std::vector<UpdateRange> ranges = ranges_of(97, 16);
  const std::int64_t n = ranges.back().first + ranges.back().count;
  const auto before = rig.driver.launches();
  sgd_step(*rig.queue, std::span(ranges).first(96), {}, trial.put(drawn(n)), trial.put(drawn(n)),
           trial.put(drawn(n)));
  CHECK(rig.driver.launches() == before + 1);
  rig.driver.synchronize(rig.stream);
}

TEST_CASE("running statistics are those of three operations, to the bit") {
  const std::int64_t channels = GENERATE(1, 3, 64, 700);
  const float fraction = GENERATE(0.999F, 0.0F, 1.0F);
  CAPTURE(channels, fraction);
  const auto log = std::make_shared<test::CallLog>();
  const auto run = [&](bool at_once) {
    const auto backend = test::make_gpu_double(log);
    std::vector<Buffer> buffers;
    const auto put = [&](const std::vector<float>& values) {
      buffers.push_back(backend->device().allocate(values.size() * sizeof(float)).value());
      backend->device().upload(buffers.back().as_floats(), values);
      return buffers.back().as_floats();
    };
    const RunningStatistics of{.channels = channels,
                               .fraction = fraction,
                               .correction = 1.25F,
                               .mean = put(drawn(channels, -1, 1, 1)),
                               .variance = put(drawn(channels, 0, 2, 2)),
                               .mean_sum = put(drawn(channels, -1, 1, 3)),
                               .variance_sum = put(drawn(channels, 0, 2, 4)),
                               .weight = put({fraction == 0.0F ? NAN : 3.7F})};
    at_once ? backend->add_to_running(of) : backend->Backend::add_to_running(of);
    const auto get = [&](const float* from, std::int64_t n) {
      std::vector<float> values(static_cast<std::size_t>(n));
      backend->device().download(values, from);
      return values;
    };
    return joined(joined(get(of.mean_sum, channels), get(of.variance_sum, channels)),
                  get(of.weight, 1));
  };
  CHECK(run(true) == run(false));
  CHECK(log->violations().empty());
}

TEST_CASE("means of running statistics are those of the host, to the bit, without waiting for it") {
  const std::int64_t channels = GENERATE(1, 3, 64, 700);
  const float weight = GENERATE(0.0F, 3.7F, 999.25F);
  CAPTURE(channels, weight);
  const auto log = std::make_shared<test::CallLog>();
  const auto run = [&](bool at_once) {
    const auto backend = test::make_gpu_double(log);
    Device& device = backend->device();
    std::vector<Buffer> buffers;
    const auto put = [&](const std::vector<float>& values) {
      buffers.push_back(device.allocate(values.size() * sizeof(float)).value());
      device.upload(buffers.back().as_floats(), values);
      return buffers.back().as_floats();
    };
    const RunningMeans of{.channels = channels,
                          .mean_sum = put(drawn(channels, -1, 1, 1)),
                          .variance_sum = put(drawn(channels, 0, 2, 2)),
                          .weight = put({weight}),
                          .mean = put(drawn(channels, 5, 6, 3)),
                          .variance = put(drawn(channels, 5, 6, 4))};
    const int before = log->downloads();
    at_once ? backend->read_running(of) : backend->Backend::read_running(of);
    CHECK((log->downloads() == before) == at_once);
    const auto get = [&](const float* from) {
      std::vector<float> values(static_cast<std::size_t>(channels));
      device.download(values, from);
      return values;
    };
    return joined(get(of.mean), get(of.variance));
  };
  CHECK(run(true) == run(false));
  CHECK(log->violations().empty());
}

TEST_CASE("as many arrays as one likes are kept at once") {
  const std::size_t count = GENERATE(std::size_t{1}, std::size_t{160}, std::size_t{161},
                                     std::size_t{330});
  const auto log = std::make_shared<test::CallLog>();
  {
    const auto backend = test::make_gpu_double(log);
    const auto steps = backend->make_device_steps().value();
    const auto memory = [&](std::int64_t n) {
      return backend->device().allocate(static_cast<std::size_t>(n) * sizeof(float)).value();
    };
    const auto n_of = [](std::size_t i) { return static_cast<std::int64_t>(i * 37 % 5000 + 1); };
    std::int64_t all = 0;
    for (std::size_t i = 0; i < count; ++i) all += n_of(i);
    Buffer from = memory(all), to = memory(all);
    const std::vector<float> values = drawn(all);
    backend->device().upload(from.as_floats(), values);
    std::vector<DeviceSteps::Kept> copies;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      copies.push_back({n_of(i), from.as_floats() + at, to.as_floats() + at});
      at += n_of(i);
    }
    steps->keep(copies);
    std::vector<float> kept(values.size());
    backend->device().download(kept, to.as_floats());
    CHECK(kept == values);
  }
  CHECK(log->violations().empty());
}

}  // namespace
}  // namespace speedo::gpu
