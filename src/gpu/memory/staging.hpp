#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include <speedo/base/result.hpp>

#include "gpu/driver/driver.hpp"
#include "gpu/memory/event_pool.hpp"

namespace speedo::gpu {

// Copies between any memory of the host and the device's on one stream, through pinned slots: the
// host goes on when its own memory is done with. Thread safety: one thread at a time.
class Staging {
 public:
  // `slot_bytes`: of each slot. Error: kFull.
  static Result<std::unique_ptr<Staging>> make(Driver& driver, EventPool& events,
                                               StreamHandle stream, std::size_t slot_bytes);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Returns when the source may change; the copy is queued.
  void upload(void* target, const void* source, std::size_t bytes);
  // Returns when the target has what was there when all that was queued before is done; zeros
  // after an error of the device.
  void download(void* target, const void* source, std::size_t bytes);

 private:
  static constexpr std::size_t kSlots = 8;
  struct Slot {
    std::byte* memory = nullptr;
    EventPool::Mark used_until;
  };

  Staging(Driver& driver, EventPool& events, StreamHandle stream, std::size_t slot_bytes)
      : driver_(driver), events_(events), stream_(stream), slot_bytes_(slot_bytes) {}
  // The one that was used the longest ago, free.
  Slot& next_slot();
  void wait_for(const Slot& slot);

  Driver& driver_;
  EventPool& events_;
  const StreamHandle stream_;
  const std::size_t slot_bytes_;
  std::byte* memory_ = nullptr;
  std::array<Slot, kSlots> slots_;
  std::size_t next_ = 0;
};

}  // namespace speedo::gpu
