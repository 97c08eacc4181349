#include "gpu/launch/queue.hpp"

#include <cstring>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::gpu {

Result<Queue> Queue::make(Driver& driver, StreamHandle stream) {
  Queue queue(driver, stream);
  SPEEDO_ASSIGN(queue.scratch_, driver.allocate(kScratchBytes));
  SPEEDO_ASSIGN(queue.pinned_, driver.allocate_pinned(kReadBytes));
  return queue;
}

Queue::~Queue() {
  if (scratch_ == nullptr && pinned_ == nullptr) return;
  driver.synchronize(stream);
  if (scratch_ != nullptr) driver.free(scratch_);
  if (pinned_ != nullptr) driver.free_pinned(pinned_);
}

Queue::Queue(Queue&& other) noexcept
    : driver(other.driver),
      stream(other.stream),
      blocks_max(other.blocks_max),
      fuses(other.fuses),
      scratch_(std::exchange(other.scratch_, nullptr)),
      pinned_(std::exchange(other.pinned_, nullptr)) {}

void* Queue::scratch_bytes(std::size_t bytes) {
  SPEEDO_ASSERT(bytes <= kScratchBytes);
  return scratch_;
}

void Queue::read_bytes(void* target, const void* source, std::size_t bytes) {
  std::memset(pinned_, 0, bytes);
  driver.copy(stream, pinned_, source, bytes);
  driver.synchronize(stream);
  std::memcpy(target, pinned_, bytes);
}

}  // namespace speedo::gpu
