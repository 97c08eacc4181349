#include "gpu/memory/event_pool.hpp"

namespace speedo::gpu {

EventPool::~EventPool() {
  for (const EventHandle event : free_) driver_.destroy(event);
}

EventPool::Mark EventPool::record(StreamHandle stream) {
  EventHandle event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      event = free_.back();
      free_.pop_back();
    }
  }
  if (event == nullptr) event = driver_.create_event();
  driver_.record(event, stream);
  // One allocation: the owner's count and the handle lie together.
  struct Owned {
    Owned(EventPool& owner, EventHandle taken) : pool(owner), event(taken) {}
    EventPool& pool;
    EventHandle event;
    ~Owned() {
      const std::lock_guard lock(pool.mutex_);
      pool.free_.push_back(event);
    }
  };
  const auto owned = std::make_shared<Owned>(*this, event);
  return {owned, &owned->event};
}

}  // namespace speedo::gpu
