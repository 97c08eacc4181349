// Blocks that are used again, and copies through slots, on the recording double.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gpu/gpu_backend.hpp"
#include "support/catch.hpp"
#include "support/gpu/plain_libraries.hpp"
#include "support/gpu/recording_driver.hpp"

namespace speedo::gpu {
namespace {

// A device on the double; all its calls are right at the end.
class MemoryRig {
 public:
  explicit MemoryRig(const GpuDevice::Limits& limits, const test::RecordingOptions& options = {})
      : driver(log, options) {
    auto made = GpuDevice::make(driver, limits);
    REQUIRE(made.has_value());
    device = std::move(*made);
  }
  ~MemoryRig() {
    device.reset();
    const auto violations = log->violations();
    CAPTURE(violations);
    CHECK(violations.empty());
  }
  MemoryRig(const MemoryRig&) = delete;
  MemoryRig& operator=(const MemoryRig&) = delete;

  Buffer take(std::size_t bytes) {
    auto buffer = device->allocate(bytes);
    REQUIRE(buffer.has_value());
    return std::move(*buffer);
  }

  std::shared_ptr<test::CallLog> log = std::make_shared<test::CallLog>();
  test::RecordingDriver driver;
  std::unique_ptr<GpuDevice> device;
};

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

TEST_CASE("a block that was given back is used again, and zero again") {
  MemoryRig rig({.kept_bytes = 1U << 20U});
  Buffer first = rig.take(1000);
  const void* const place = first.data();
  rig.device->upload(first.as_floats(), counted(250));
  first = Buffer();
  CHECK(rig.device->usage().used_bytes == 0);
  CHECK(rig.device->usage().kept_bytes >= 1000);
  const Buffer second = rig.take(990);
  CHECK(second.data() == place);
  std::vector<float> values(247);
  rig.device->download(values, second.as_floats());
  CHECK(values == std::vector<float>(247, 0.0F));
  CHECK(rig.device->usage().kept_bytes == 0);
}

TEST_CASE("a block is used again only when the work that is queued on it is done") {
  const std::uint64_t seed = GENERATE(0, 1, 2, 3);
  MemoryRig rig({.kept_bytes = 1U << 20U}, {.seed = seed});
  auto in = rig.device->allocate_pinned(1000);
  REQUIRE(in.has_value());
  std::fill_n(in->as_floats(), 250, 3.0F);
  Buffer first = rig.take(1000);
  rig.device->queue_upload(rig.device->transfer(), first.as_floats(), {in->as_floats(), 250});
  first = Buffer();
  const Buffer second = rig.take(1000);
  std::vector<float> values(250);
  rig.device->download(values, second.as_floats());
  CHECK(values == std::vector<float>(250, 0.0F));
}

TEST_CASE("what lies unused stays within its limit, and goes before memory runs out") {
  constexpr std::size_t kBlock = 1U << 20U;
  MemoryRig rig({.kept_bytes = 2 * kBlock, .staging_slot_bytes = 4096}, {.capacity = 4 * kBlock});
  {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 4; ++i) buffers.push_back(rig.take(kBlock));
    const auto refused = rig.device->allocate(kBlock);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kFull);
    CHECK(refused.error().message.find(std::to_string(kBlock)) != std::string::npos);
    CHECK(refused.error().message.find(std::to_string(4 * kBlock)) != std::string::npos);
  }
  rig.device->synchronize();
  const Buffer small = rig.take(512);
  CHECK(rig.device->usage().kept_bytes <= 4 * kBlock);
  const Buffer large = rig.take(3 * kBlock);
  CHECK(rig.driver.used_bytes() <= 4 * kBlock);
  CHECK(rig.device->usage().kept_bytes <= kBlock);
}

// A backend on a double with so much memory, which keeps what is given back.
std::unique_ptr<Backend> keeping_backend(const std::shared_ptr<test::CallLog>& log,
                                         std::size_t capacity, bool lets_go = false) {
  auto driver = std::make_unique<test::RecordingDriver>(
      log, test::RecordingOptions{.capacity = capacity});
  test::RecordingDriver& recording = *driver;
  GpuParts parts;
  parts.make_blas = [&recording](StreamHandle) -> Result<std::unique_ptr<Blas>> {
    return test::make_plain_blas(recording);
  };
  parts.make_dnn = [&recording](StreamHandle stream) -> Result<std::unique_ptr<Dnn>> {
    return test::make_plain_dnn(recording, stream);
  };
  parts.driver = std::move(driver);
  parts.limits.kept_bytes = capacity;
  parts.lets_go = lets_go;
  auto made = make_gpu_backend(std::move(parts));
  REQUIRE(made.has_value());
  return std::move(*made);
}

TEST_CASE("what lies unused goes before there is no room for working memory") {
  constexpr std::size_t kCapacity = std::size_t{16} << 20U;
  const auto log = std::make_shared<test::CallLog>();
  {
    const auto backend = keeping_backend(log, kCapacity);
    LrnShape shape;
    shape.batch = 1, shape.channels = 5, shape.h = 512, shape.w = 512;
    const auto operation = backend->make_lrn(shape);
    REQUIRE(operation.has_value());
    REQUIRE(backend->scratch_bytes() > std::int64_t{4} << 20U);
    Buffer used = backend->device().allocate(2U << 20U).value();
    Buffer unused = backend->device().allocate(8U << 20U).value();
    unused = Buffer();
    CHECK(backend->provide_scratch());
    CHECK(used.bytes() == 2U << 20U);
  }
  const auto violations = log->violations();
  CAPTURE(violations);
  CHECK(violations.empty());
}

TEST_CASE("a backend lets go of its device when nothing of it is left, if it is to") {
  const bool lets_go = GENERATE(false, true);
  CAPTURE(lets_go);
  const auto log = std::make_shared<test::CallLog>();
  {
    const auto backend = keeping_backend(log, std::size_t{16} << 20U, lets_go);
    const Buffer used = backend->device().allocate(1000).value();
    CHECK(log->releases() == 0);
  }
  CHECK(log->releases() == (lets_go ? 1 : 0));
  const auto violations = log->violations();
  CAPTURE(violations);
  CHECK(violations.empty());
}

TEST_CASE("sizes have few classes, which waste a quarter at most") {
  MemoryRig rig({.kept_bytes = 1U << 30U});
  EventPool events(rig.driver);
  const BlockCache cache(rig.driver, events, {}, {}, 1U << 30U);
  for (std::size_t bytes = 1; bytes < (1U << 22U); bytes += bytes / 7 + 1) {
    const std::size_t block = cache.block_bytes(bytes);
    CAPTURE(bytes, block);
    CHECK(block >= bytes);
    CHECK((block <= 512 || block - bytes <= block / 4));
    CHECK(cache.block_bytes(block) == block);
  }
  const BlockCache exact(rig.driver, events, {}, {}, 0);
  CHECK(exact.block_bytes(12345) == 12345);
}

TEST_CASE("copies larger than a slot, and than all slots, arrive whole") {
  const std::uint64_t seed = GENERATE(0, 1, 5);
  MemoryRig rig({.staging_slot_bytes = 256}, {.seed = seed});
  for (const std::size_t count : {1, 63, 64, 65, 511, 512, 513, 2000}) {
    Buffer buffer = rig.take(count * sizeof(float));
    rig.device->upload(buffer.as_floats(), counted(count));
    std::vector<float> values(count);
    rig.device->download(values, buffer.as_floats());
    CAPTURE(count);
    CHECK(values == counted(count));
  }
}

TEST_CASE("a device that breaks says so, brings zeros and is left without a hang") {
  MemoryRig rig({});
  Buffer buffer = rig.take(400);
  rig.device->upload(buffer.as_floats(), counted(100));
  rig.driver.break_down({ErrorCode::kInternal, "an illegal memory access"});
  std::vector<float> values(100, 1.0F);
  rig.device->download(values, buffer.as_floats());
  CHECK(values == std::vector<float>(100, 0.0F));
  CHECK(rig.device->is_done(rig.device->record(rig.device->compute())));
  const auto refused = rig.device->allocate(1U << 20U);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message == "an illegal memory access");
}

}  // namespace
}  // namespace speedo::gpu
