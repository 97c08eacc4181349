#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <speedo/base/shared_memory.hpp>

namespace speedo {

// Floats of the host, zero at first; in memory that other processes can be given, if that is wanted
// and to be had. Thread safety: none needed.
class HostFloats {
 public:
  HostFloats() = default;
  HostFloats(std::size_t count, bool shared) : count_(count) {
    if (shared && count > 0) {
      if (auto memory = SharedMemory::create(count * sizeof(float))) shared_ = std::move(*memory);
    }
    if (!shared_) heap_.resize(count);
  }

  std::span<float> values() {
    if (!shared_) return heap_;
    return {reinterpret_cast<float*>(shared_->data()), count_};
  }
  bool empty() const { return count_ == 0; }
  // Null: it is this process' alone.
  const std::shared_ptr<SharedMemory>& shared() const { return shared_; }

 private:
  std::size_t count_ = 0;
  std::vector<float> heap_;
  std::shared_ptr<SharedMemory> shared_;
};

}  // namespace speedo
