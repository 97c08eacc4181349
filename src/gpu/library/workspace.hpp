#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include <speedo/base/result.hpp>

#include "gpu/driver/driver.hpp"

namespace speedo::gpu {

// Memory for one operation at a time, whose content lives only during it.
struct WorkMemory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Working memory of the device that the operations of one stream share. Thread safety: one thread
// at a time.
class Workspace {
 public:
  // `driver` and `stream`, which all work that uses it is queued on, outlive it. `make_room`: gives
  // back to the driver what others keep unused, when there is no room; may be empty.
  Workspace(Driver& driver, StreamHandle stream, std::function<void()> make_room = {})
      : driver_(driver), stream_(stream), make_room_(std::move(make_room)) {}
  ~Workspace() { release(); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Afterwards it has room for so many bytes at least. Only counts; memory given out before is
  // void.
  void reserve(std::size_t bytes);
  // What was reserved.
  std::int64_t bytes() const { return static_cast<std::int64_t>(reserved_); }
  // Takes what was reserved. Error: kFull, with the bytes asked for.
  Result<void> provide();

  // The memory, 256-byte aligned, taken when first asked for if it was not provided; what it holds
  // is undefined. Requires: bytes were reserved. Error: kFull.
  Result<WorkMemory> take(std::size_t bytes);

 private:
  void release();

  Driver& driver_;
  StreamHandle stream_;
  const std::function<void()> make_room_;
  std::size_t reserved_ = 0;
  WorkMemory memory_;
};

}  // namespace speedo::gpu
