#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <speedo/backend/device.hpp>

#include "gpu/driver/driver.hpp"
#include "gpu/memory/block_cache.hpp"
#include "gpu/memory/event_pool.hpp"
#include "gpu/memory/staging.hpp"

namespace speedo::gpu {

// One GPU's memory and order, by the calls of a Driver.
class GpuDevice final : public Device {
 public:
  struct Limits {
    // How many bytes may lie unused; see BlockCache.
    std::size_t kept_bytes = std::size_t{1} << 30U;
    std::size_t kept_pinned_bytes = std::size_t{1} << 28U;
    std::size_t staging_slot_bytes = std::size_t{1} << 20U;
  };
  // `driver` outlives it. Error: kFull, or what the driver says.
  static Result<std::unique_ptr<GpuDevice>> make(Driver& driver, const Limits& limits);
  ~GpuDevice() override;

  MemoryKind memory() const override { return MemoryKind::kDevice; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Buffer> allocate_pinned(std::size_t bytes) override;
  void upload(float* target, std::span<const float> source) override;
  void download(std::span<float> target, const float* source) override;
  void queue_upload(Stream& stream, float* target, std::span<const float> source) override;
  void queue_download(Stream& stream, std::span<float> target, const float* source) override;
  Stream& compute() override { return compute_; }
  Stream& transfer() override { return transfer_; }
  StreamEvent record(Stream& stream) override;
  void wait(Stream& stream, const StreamEvent& event) override;
  void wait(const StreamEvent& event) override;
  bool is_done(const StreamEvent& event) override;
  void synchronize() override;

  StreamHandle compute_handle() const { return compute_.handle; }
  // How many buffers of the device's memory were given back so far. Any thread.
  std::uint64_t returned() const { return returned_; }
  // Bytes of buffers, and of what lies unused.
  BlockCache::Usage usage() const { return device_blocks_.usage(); }
  // Gives the latter back to CUDA.
  void drop_unused() { device_blocks_.drop_unused(); }

 private:
  struct GpuStream final : Stream {
    explicit GpuStream(Driver& driver) : handle(driver.create_stream()) {}
    const StreamHandle handle;
  };
  GpuDevice(Driver& driver, const Limits& limits);
  StreamHandle handle_of(const Stream& stream) const;
  static EventHandle handle_of(const StreamEvent& event);

  Driver& driver_;
  GpuStream compute_, transfer_;
  GpuStream clearing_;  // of memory that is new, beside whatever is computed
  std::atomic<std::uint64_t> returned_{0};
  EventPool events_;
  BlockCache device_blocks_, pinned_blocks_;
  std::unique_ptr<Staging> staging_;
};

}  // namespace speedo::gpu
