#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <speedo/base/result.hpp>

#include "gpu/driver/driver.hpp"
#include "gpu/launch/kernel.hpp"

namespace speedo::gpu {

// Where operations put their work, one after the other: a stream of a device, with memory that they
// share. Thread safety: one thread at a time, as Backend.
class Queue {
 public:
  // How much scratch() gives: an operation divides its work such that partial results fit.
  static constexpr std::size_t kScratchBytes = std::size_t{4} << 20U;
  // How much read() can bring.
  static constexpr std::size_t kReadBytes = 4096;

  // `driver` and `stream` outlive it. Error: kFull.
  static Result<Queue> make(Driver& driver, StreamHandle stream);
  ~Queue();
  Queue(Queue&& other) noexcept;
  Queue& operator=(Queue&&) = delete;

  // Memory of the device, 256-byte aligned, that holds anything; for one operation, from which
  // the next one takes it. Requires: bytes <= kScratchBytes.
  template <typename Element>
  Element* scratch(std::int64_t count) {
    return static_cast<Element*>(scratch_bytes(static_cast<std::size_t>(count) * sizeof(Element)));
  }

  // Waits for what was queued, and brings a value from the device's memory.
  template <typename Value>
  Value read(const void* source) {
    static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= kReadBytes);
    Value value;
    read_bytes(&value, source, sizeof(Value));
    return value;
  }

  Driver& driver;
  const StreamHandle stream;
  // At most; tests take fewer, so that each thread gets several elements.
  std::int64_t blocks_max = 16384;
  bool fuses = true;  // see MultiplyAdd

 private:
  Queue(Driver& the_driver, StreamHandle the_stream) : driver(the_driver), stream(the_stream) {}
  void* scratch_bytes(std::size_t bytes);
  // After an error of the device the target is zero.
  void read_bytes(void* target, const void* source, std::size_t bytes);

  void* scratch_ = nullptr;
  void* pinned_ = nullptr;
};

// Threads enough for n elements, each of which may get several: see Lane::first(). The same on
// every device, so that sums have the same order. Requires: n > 0.
inline Grid grid_for(std::int64_t n, std::int64_t elements_per_thread = 1,
                     std::int64_t blocks_max = 16384) {
  constexpr std::int64_t kThreads = 256;
  const std::int64_t wanted =
      (n + kThreads * elements_per_thread - 1) / (kThreads * elements_per_thread);
  return {wanted < blocks_max ? wanted : blocks_max, static_cast<int>(kThreads)};
}
inline Grid grid_for(const Queue& queue, std::int64_t n, std::int64_t elements_per_thread = 1) {
  return grid_for(n, elements_per_thread, queue.blocks_max);
}

}  // namespace speedo::gpu
