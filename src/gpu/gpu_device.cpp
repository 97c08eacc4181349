#include "gpu/gpu_device.hpp"

#include <cstring>

#include <speedo/base/assert.hpp>

namespace speedo::gpu {

GpuDevice::GpuDevice(Driver& driver, const Limits& limits)
    : driver_(driver),
      compute_(driver),
      transfer_(driver),
      clearing_(driver),
      events_(driver),
      device_blocks_(driver, events_,
                     {.allocate = [this](std::size_t bytes) { return driver_.allocate(bytes); },
                      .free = [this](void* memory) { driver_.free(memory); },
                      .place = "on the GPU"},
                     {compute_.handle, transfer_.handle}, limits.kept_bytes),
      pinned_blocks_(
          driver, events_,
          {.allocate = [this](std::size_t bytes) { return driver_.allocate_pinned(bytes); },
           .free = [this](void* memory) { driver_.free_pinned(memory); },
           .place = "in the host's memory that can be pinned"},
          {compute_.handle, transfer_.handle}, limits.kept_pinned_bytes) {}

Result<std::unique_ptr<GpuDevice>> GpuDevice::make(Driver& driver, const Limits& limits) {
  std::unique_ptr<GpuDevice> device(new GpuDevice(driver, limits));
  SPEEDO_ASSIGN(device->staging_, Staging::make(driver, device->events_, device->compute_.handle,
                                                limits.staging_slot_bytes));
  SPEEDO_TRY(driver.check());
  return device;
}

GpuDevice::~GpuDevice() {
  synchronize();
  staging_.reset();
  device_blocks_.drop_unused();
  pinned_blocks_.drop_unused();
  for (const GpuStream* stream : {&compute_, &transfer_, &clearing_}) {
    driver_.destroy(stream->handle);
  }
}

StreamHandle GpuDevice::handle_of(const Stream& stream) const {
  SPEEDO_ASSERT(&stream == &compute_ || &stream == &transfer_);
  return static_cast<const GpuStream&>(stream).handle;
}

EventHandle GpuDevice::handle_of(const StreamEvent& event) {
  return event.mark() == nullptr ? nullptr : *static_cast<const EventHandle*>(event.mark());
}

// Zeros are there when the call returns, whichever stream uses them first.
Result<Buffer> GpuDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  SPEEDO_ASSIGN(void* const memory, device_blocks_.take(bytes));
  driver_.zero(clearing_.handle, memory, bytes);
  driver_.synchronize(clearing_.handle);
  return Buffer(memory, bytes, [this](void* gone) {
    ++returned_;
    device_blocks_.give_back(gone);
  });
}

Result<Buffer> GpuDevice::allocate_pinned(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  SPEEDO_ASSIGN(void* const memory, pinned_blocks_.take(bytes));
  std::memset(memory, 0, bytes);
  return Buffer(memory, bytes, [this](void* gone) { pinned_blocks_.give_back(gone); });
}

void GpuDevice::upload(float* target, std::span<const float> source) {
  staging_->upload(target, source.data(), source.size_bytes());
}

void GpuDevice::download(std::span<float> target, const float* source) {
  staging_->download(target.data(), source, target.size_bytes());
}

void GpuDevice::queue_upload(Stream& stream, float* target, std::span<const float> source) {
  if (source.empty()) return;
  driver_.copy(handle_of(stream), target, source.data(), source.size_bytes());
}

void GpuDevice::queue_download(Stream& stream, std::span<float> target, const float* source) {
  if (target.empty()) return;
  driver_.copy(handle_of(stream), target.data(), source, target.size_bytes());
}

StreamEvent GpuDevice::record(Stream& stream) {
  return StreamEvent(events_.record(handle_of(stream)));
}

void GpuDevice::wait(Stream& stream, const StreamEvent& event) {
  if (const EventHandle handle = handle_of(event)) driver_.wait(handle_of(stream), handle);
}

void GpuDevice::wait(const StreamEvent& event) {
  if (const EventHandle handle = handle_of(event)) driver_.synchronize(handle);
}

bool GpuDevice::is_done(const StreamEvent& event) {
  const EventHandle handle = handle_of(event);
  return handle == nullptr || driver_.is_done(handle);
}

void GpuDevice::synchronize() {
  driver_.synchronize(compute_.handle);
  driver_.synchronize(transfer_.handle);
}

}  // namespace speedo::gpu
