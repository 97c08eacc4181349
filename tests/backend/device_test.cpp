// What include/speedo/backend/device.hpp promises, on every device.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "support/catch.hpp"
#include "support/deferred_backend.hpp"
#include "support/device_values.hpp"
#include "support/kernels.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

using test::values_at;

constexpr std::int64_t kFloats = 100;

std::unique_ptr<Backend> any_backend() {
  const auto name = GENERATE(as<std::string>(), "cpu", "reference", "deferred", "gpu");
  CAPTURE(name);
  if (name == "gpu") return test::make_gpu_double(GENERATE(0, 1, 2));
  if (name == "reference") return make_reference_backend();
  auto cpu = make_cpu_backend(2);
  return name == "deferred" ? make_deferred_backend(std::move(cpu)) : std::move(cpu);
}

Buffer floats(Device& device, std::int64_t count = kFloats) {
  auto made = device.allocate(static_cast<std::size_t>(count) * sizeof(float));
  REQUIRE(made.has_value());
  return std::move(*made);
}

std::span<float> pinned_floats(Buffer& buffer) {
  return {buffer.as_floats(), buffer.bytes() / sizeof(float)};
}

TEST_CASE("memory of a device is zero and aligned, and may be refused") {
  const auto backend = any_backend();
  Device& device = backend->device();
  for (const std::int64_t count : {1, 17, 5000}) {
    const Buffer buffer = floats(device, count);
    CHECK(buffer.bytes() == static_cast<std::size_t>(count) * sizeof(float));
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    CHECK(values_at(device, buffer.as_floats(), count) ==
          std::vector<float>(static_cast<std::size_t>(count), 0.0F));
  }
  auto pinned = device.allocate_pinned(4 * sizeof(float));
  REQUIRE(pinned.has_value());
  for (const float value : pinned_floats(*pinned)) CHECK(value == 0.0F);
  CHECK(device.allocate(0)->data() == nullptr);
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, std::size_t{1} << 60U}) {
    const auto refused = device.allocate(bytes);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == ErrorCode::kFull);
    CHECK(refused.error().message.find(std::to_string(bytes)) != std::string::npos);
  }
}

TEST_CASE("the source of an upload is free when the call returns") {
  const auto backend = any_backend();
  Device& device = backend->device();
  Buffer buffer = floats(device);
  std::vector<float> source(kFloats, 1.5F);
  device.upload(buffer.as_floats(), source);
  backend->map(affine(1.0F, 1.0F), kFloats, buffer.as_floats(), buffer.as_floats());
  source.assign(kFloats, -1.0F);
  CHECK(values_at(device, buffer.as_floats(), kFloats) == std::vector<float>(kFloats, 2.5F));
}

TEST_CASE("queued copies and operations keep the order that events give them") {
  const auto backend = any_backend();
  Device& device = backend->device();
  Buffer x = floats(device), y = floats(device);
  auto in = device.allocate_pinned(x.bytes()), out = device.allocate_pinned(x.bytes());
  REQUIRE((in.has_value() && out.has_value()));
  for (int round = 1; round <= 3; ++round) {
    for (float& value : pinned_floats(*in)) value = static_cast<float>(round);
    device.queue_upload(device.transfer(), x.as_floats(), pinned_floats(*in));
    device.wait(device.compute(), device.record(device.transfer()));
    backend->axpby(kFloats, 2.0F, x.as_floats(), 1.0F, y.as_floats());
    device.wait(device.transfer(), device.record(device.compute()));
    device.queue_download(device.transfer(), pinned_floats(*out), y.as_floats());
    device.wait(device.record(device.transfer()));
    const auto expected = static_cast<float>(round * (round + 1));
    for (const float value : pinned_floats(*out)) REQUIRE(value == expected);
  }
}

TEST_CASE("events are done some time, and at once when nobody recorded them") {
  const auto backend = any_backend();
  Device& device = backend->device();
  CHECK(device.is_done({}));
  device.wait(StreamEvent());
  device.wait(device.compute(), {});
  Buffer x = floats(device);
  for (int i = 0; i < 5; ++i)
    backend->map(affine(1.0F, 1.0F), kFloats, x.as_floats(), x.as_floats());
  const StreamEvent polled = device.record(device.compute());
  while (!device.is_done(polled)) {
  }
  CHECK(device.is_done(polled));
  backend->map(affine(1.0F, 1.0F), kFloats, x.as_floats(), x.as_floats());
  const StreamEvent last = device.record(device.compute());
  device.synchronize();
  CHECK(device.is_done(last));
  CHECK(values_at(device, x.as_floats(), 1)[0] == 6.0F);
}

TEST_CASE("another thread may wait for an event") {
  const auto backend = any_backend();
  Device& device = backend->device();
  Buffer x = floats(device);
  std::vector<float> target(kFloats);
  backend->fill(kFloats, 3.0F, x.as_floats());
  device.queue_download(device.compute(), target, x.as_floats());
  const StreamEvent done = device.record(device.compute());
  std::thread([&] { device.wait(done); }).join();
  CHECK(target == std::vector<float>(kFloats, 3.0F));
}

}  // namespace
}  // namespace speedo
