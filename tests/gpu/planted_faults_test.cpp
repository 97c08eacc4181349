// The recording double finds what is wrong with the calls of a backend: planted faults in the calls
// of GpuDevice, and in kernels.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/faulty_driver.hpp"
#include "gpu/gpu_device.hpp"
#include "gpu/launch/launch.hpp"
#include "support/catch.hpp"
#include "support/gpu/recording_driver.hpp"

namespace speedo::gpu {
namespace {

using test::CallLog;
using test::DriverFault;
using test::FaultyDriver;
using test::RecordingDriver;

constexpr std::int64_t kLength = 1000;
constexpr std::size_t kBytes = kLength * sizeof(float);
constexpr std::uint64_t kSeeds = 6;

// y = x + left neighbour's x, 0 for the first; with faults.
enum class KernelFault {
  kNone,
  kLongTail,        // writes one element more
  kShortTail,       // leaves the last element out
  kNoPhase,         // reads what another thread writes in the same phase
  kLeavesShared,    // one float more than it has
  kWrongBlockSize,  // no multiple of 32
  kManyThreads,     // more than the kernel says
};
struct AddNeighbour {
  static constexpr const char* kName = "add_neighbour";
  std::int64_t n = 0;
  const float* x = nullptr;
  float* y = nullptr;
  KernelFault fault = KernelFault::kNone;

  SPEEDO_HOST_DEVICE int phases() const { return 2; }
  SPEEDO_HOST_DEVICE std::int64_t count() const {
    if (fault == KernelFault::kLongTail) return n + 1;
    return fault == KernelFault::kShortTail ? n - 1 : n;
  }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    auto* const tile = reinterpret_cast<float*>(lane.shared);
    const std::int64_t i = lane.first();
    const bool is_one = fault == KernelFault::kNoPhase;
    if (phase == 0) {
      const std::int64_t place =
          fault == KernelFault::kLeavesShared ? lane.thread + 1 : lane.thread;
      tile[place] = i < n ? x[i] : 0.0F;
    }
    if (phase == (is_one ? 0 : 1) && i < count()) {
      const float before = i == 0 ? 0.0F : lane.thread > 0 ? tile[lane.thread - 1] : x[i - 1];
      y[i] = tile[lane.thread] + before;
    }
  }
};

Grid grid_of(KernelFault fault) {
  Grid grid = grid_for(kLength);
  grid.shared_bytes = static_cast<std::size_t>(grid.threads) * sizeof(float);
  if (fault == KernelFault::kWrongBlockSize) grid.threads = 250;
  if (fault == KernelFault::kManyThreads) grid.threads = 512;
  return grid;
}

Buffer made(Result<Buffer> buffer) {
  REQUIRE(buffer.has_value());
  return std::move(*buffer);
}

// What a training does to a device: the weights come in beside the computing, the result goes out.
std::vector<float> train(Driver& driver, KernelFault fault) {
  auto opened = GpuDevice::make(
      driver, {.kept_bytes = 0, .kept_pinned_bytes = 0, .staging_slot_bytes = 4096});
  REQUIRE(opened.has_value());
  GpuDevice& device = **opened;
  auto queue = Queue::make(driver, device.compute_handle());
  REQUIRE(queue.has_value());
  Buffer x = made(device.allocate(kBytes)), y = made(device.allocate(kBytes));
  Buffer in = made(device.allocate_pinned(kBytes)), out = made(device.allocate_pinned(kBytes));
  const std::span<float> incoming(in.as_floats(), kLength), outgoing(out.as_floats(), kLength);
  std::vector<float> seen;
  for (int round = 1; round <= 3; ++round) {
    std::ranges::fill(incoming, static_cast<float>(round));
    device.queue_upload(device.transfer(), x.as_floats(), incoming);
    device.wait(device.compute(), device.record(device.transfer()));
    launch(*queue, grid_of(fault), AddNeighbour{kLength, x.as_floats(), y.as_floats(), fault});
    device.wait(device.transfer(), device.record(device.compute()));
    device.queue_download(device.transfer(), outgoing, y.as_floats());
    device.wait(device.record(device.transfer()));
    seen.insert(seen.end(), outgoing.begin(), outgoing.end());
    y = made(device.allocate(kBytes));  // the one before is released
  }
  return seen;
}

std::vector<float> expected_values() {
  std::vector<float> expected;
  for (int round = 1; round <= 3; ++round) {
    for (std::int64_t i = 0; i < kLength; ++i) {
      expected.push_back(static_cast<float>(i == 0 ? round : 2 * round));
    }
  }
  return expected;
}

struct Outcome {
  std::vector<float> values;
  std::vector<std::string> violations;
};

Outcome run(DriverFault driver_fault, KernelFault kernel_fault, std::uint64_t seed) {
  const auto log = std::make_shared<CallLog>();
  Outcome outcome;
  {
    RecordingDriver driver(log, {.seed = seed});
    FaultyDriver faulty(driver, driver_fault);
    outcome.values = train(faulty, kernel_fault);
  }
  outcome.violations = log->violations();
  return outcome;
}

TEST_CASE("a device without a fault is right in every order, and no call is wrong") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = run(DriverFault::kNone, KernelFault::kNone, seed);
    CAPTURE(seed, outcome.violations);
    CHECK(outcome.violations.empty());
    CHECK(outcome.values == expected_values());
  }
}

// Whether a fault shows: by a call that is found wrong, and by values that are wrong or differ from
// one order to another.
struct Signs {
  std::vector<std::string> violations;
  bool is_wrong = false;

  bool has(const std::string& word) const {
    return std::ranges::any_of(
        violations, [&](const std::string& each) { return each.find(word) != std::string::npos; });
  }
};

Signs signs_of(DriverFault driver_fault, KernelFault kernel_fault) {
  Signs signs;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Outcome outcome = run(driver_fault, kernel_fault, seed);
    signs.is_wrong = signs.is_wrong || outcome.values != expected_values();
    std::ranges::move(outcome.violations, std::back_inserter(signs.violations));
  }
  return signs;
}

TEST_CASE("each planted fault in the calls of a device is reported") {
  const auto [fault, word] = GENERATE(table<DriverFault, std::string>({
      {DriverFault::kNoWait, "on two streams without an order"},
      {DriverFault::kNoRecord, "the event was never recorded"},
      {DriverFault::kNoSynchronize, "the host's memory changed before it was copied"},
      {DriverFault::kFreesTwice, "was freed before"},
      {DriverFault::kFreesAtOnce, "which was freed"},
      {DriverFault::kKeepsMemory, "was never freed"},
      {DriverFault::kKeepsStreams, "a stream was never destroyed"},
      {DriverFault::kCopiesTooMuch, "leaves block"},
      {DriverFault::kDeadStream, "the stream was destroyed"},
  }));
  CAPTURE(static_cast<int>(fault));
  const Signs signs = signs_of(fault, KernelFault::kNone);
  CAPTURE(signs.violations);
  CHECK(signs.has(word));
}

TEST_CASE("planted faults in the calls of a device that change values are seen in them") {
  const auto fault =
      GENERATE(DriverFault::kNoWait, DriverFault::kNoSynchronize, DriverFault::kCopiesTooLittle);
  CAPTURE(static_cast<int>(fault));
  CHECK(signs_of(fault, KernelFault::kNone).is_wrong);
}

TEST_CASE("each planted fault in a kernel is reported") {
  const auto [fault, word] = GENERATE(table<KernelFault, std::string>({
      {KernelFault::kLongTail, "add_neighbour writes beyond block"},
      {KernelFault::kLeavesShared, "writes beyond its shared memory"},
      {KernelFault::kWrongBlockSize, "no device runs 4 blocks of 250 threads"},
      {KernelFault::kManyThreads, "no device runs 4 blocks of 512 threads"},
  }));
  CAPTURE(static_cast<int>(fault));
  const Signs signs = signs_of(DriverFault::kNone, fault);
  CAPTURE(signs.violations);
  CHECK(signs.has(word));
}

TEST_CASE("planted faults in the indices and phases of a kernel are seen in the values") {
  const auto fault = GENERATE(KernelFault::kShortTail, KernelFault::kNoPhase);
  CAPTURE(static_cast<int>(fault));
  CHECK(signs_of(DriverFault::kNone, fault).is_wrong);
}

// What GpuDevice cannot do, whatever is left out of its calls.
TEST_CASE("wrong calls of the driver itself are reported") {
  const auto log = std::make_shared<CallLog>();
  {
    RecordingDriver driver(log);
    const StreamHandle stream = driver.create_stream();
    void* const memory = *driver.allocate(kBytes);
    std::vector<float> host(kLength);
    driver.copy(stream, host.data(), memory, kBytes);
    driver.free(memory);
    CHECK(log->has("while copy is queued"));
    driver.synchronize(stream);

    void* const unset = *driver.allocate(kBytes);
    driver.copy(stream, host.data(), unset, kBytes);
    driver.synchronize(stream);
    CHECK(log->has("byte 0 of what is read was never written"));

    driver.wait(stream, reinterpret_cast<EventHandle>(unset));
    CHECK(log->has("no such event"));
    driver.free(static_cast<std::byte*>(unset) + 256);
    CHECK(log->has("nothing was allocated there"));
    driver.free(unset);

    driver.zero(stream, host.data(), kBytes);
    CHECK(log->has("not memory of the device"));
    driver.destroy(stream);
    CHECK(log->has("has work queued"));
  }
  CHECK_FALSE(log->has("never destroyed"));
}

TEST_CASE("the host cannot follow an address of the recording double") {
  const auto log = std::make_shared<CallLog>();
  RecordingDriver driver(log);
  void* const memory = *driver.allocate(kBytes);
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  errno = 0;
  CHECK(write(ends[1], memory, sizeof(float)) == -1);
  CHECK(errno == EFAULT);
  for (const int end : ends) close(end);
  driver.free(memory);
}

}  // namespace
}  // namespace speedo::gpu
