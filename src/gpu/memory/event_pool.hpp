#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gpu/driver/driver.hpp"

namespace speedo::gpu {

// Events of a driver, which are made once and used again. Any thread.
class EventPool {
 public:
  explicit EventPool(Driver& driver) : driver_(driver) {}
  // All events have come back.
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // An event behind all that has been queued on the stream. It goes back when its last owner goes.
  using Mark = std::shared_ptr<const EventHandle>;
  Mark record(StreamHandle stream);

 private:
  Driver& driver_;
  std::mutex mutex_;  // of free_
  std::vector<EventHandle> free_;
};

}  // namespace speedo::gpu
