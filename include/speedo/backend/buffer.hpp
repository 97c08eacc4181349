#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <speedo/base/shared_memory.hpp>

namespace speedo {

// Memory of one device, released when the buffer goes. 64-byte aligned. May be empty.
class Buffer {
 public:
  using Release = std::function<void(void*)>;

  Buffer() = default;
  Buffer(void* memory, std::size_t bytes, Release release)
      : memory_(memory, std::move(release)), bytes_(bytes) {}
  // All of a memory that other processes can be given.
  explicit Buffer(std::shared_ptr<SharedMemory> shared)
      : memory_(shared->data(), [](void*) {}),
        bytes_(shared->bytes()),
        shared_(std::move(shared)) {}

  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }
  float* as_floats() { return static_cast<float*>(memory_.get()); }
  const float* as_floats() const { return static_cast<const float*>(memory_.get()); }
  std::size_t bytes() const { return bytes_; }
  // Null: it is this process' alone.
  const std::shared_ptr<SharedMemory>& shared() const { return shared_; }

 private:
  std::unique_ptr<void, Release> memory_{nullptr, [](void*) {}};
  std::size_t bytes_ = 0;
  std::shared_ptr<SharedMemory> shared_;
};

}  // namespace speedo
