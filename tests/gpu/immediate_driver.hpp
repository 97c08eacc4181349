#pragma once

#include <cstdlib>
#include <cstring>
#include <utility>

#include "gpu/driver/driver.hpp"

namespace speedo::gpu {

// A driver that does at once, on the host, whatever is asked of it.
class ImmediateDriver final : public Driver {
 public:
  Result<void*> allocate(std::size_t bytes) override {
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  Result<void*> allocate_pinned(std::size_t bytes) override { return allocate(bytes); }
  void free(void* memory) override { std::free(memory); }
  void free_pinned(void* memory) override { std::free(memory); }

  StreamHandle create_stream() override { return nullptr; }
  void destroy(StreamHandle) override {}
  EventHandle create_event() override { return nullptr; }
  void destroy(EventHandle) override {}
  void record(EventHandle, StreamHandle) override {}
  void wait(StreamHandle, EventHandle) override {}
  bool is_done(EventHandle) override { return true; }
  void synchronize(EventHandle) override {}
  void synchronize(StreamHandle) override {}

  void copy(StreamHandle, void* target, const void* source, std::size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void zero(StreamHandle, void* target, std::size_t bytes) override {
    std::memset(target, 0, bytes);
  }
  void launch(StreamHandle, const KernelEntry& entry, const Grid& grid,
              const void* kernel) override {
    entry.host(grid, kernel, HostOrder::kUp);
  }
  void fail(Error error) override {
    if (check_) check_ = std::move(error);
  }
  Result<void> check() override { return check_; }

 private:
  Result<void> check_;
};

}  // namespace speedo::gpu
