#include "gpu/memory/staging.hpp"

#include <algorithm>
#include <cstring>

namespace speedo::gpu {

Result<std::unique_ptr<Staging>> Staging::make(Driver& driver, EventPool& events,
                                               StreamHandle stream, std::size_t slot_bytes) {
  std::unique_ptr<Staging> staging(new Staging(driver, events, stream, slot_bytes));
  SPEEDO_ASSIGN(void* const memory, driver.allocate_pinned(kSlots * slot_bytes));
  staging->memory_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < kSlots; ++i) {
    staging->slots_[i].memory = staging->memory_ + i * slot_bytes;
  }
  return staging;
}

Staging::~Staging() {
  if (memory_ == nullptr) return;
  for (const Slot& slot : slots_) wait_for(slot);
  driver_.free_pinned(memory_);
}

void Staging::wait_for(const Slot& slot) {
  if (slot.used_until) driver_.synchronize(*slot.used_until);
}

Staging::Slot& Staging::next_slot() {
  Slot& slot = slots_[next_++ % kSlots];
  wait_for(slot);
  return slot;
}

void Staging::upload(void* target, const void* source, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += slot_bytes_) {
    const std::size_t count = std::min(slot_bytes_, bytes - at);
    Slot& slot = next_slot();
    std::memcpy(slot.memory, static_cast<const std::byte*>(source) + at, count);
    driver_.copy(stream_, static_cast<std::byte*>(target) + at, slot.memory, count);
    slot.used_until = events_.record(stream_);
  }
}

// All slots but one are on their way while the host empties one.
void Staging::download(void* target, const void* source, std::size_t bytes) {
  const std::size_t chunks = (bytes + slot_bytes_ - 1) / slot_bytes_;
  const auto bytes_of = [&](std::size_t chunk) {
    return std::min(slot_bytes_, bytes - chunk * slot_bytes_);
  };
  std::array<Slot*, kSlots> on_their_way{};
  std::size_t queued = 0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (; queued < chunks && queued < chunk + kSlots - 1; ++queued) {
      Slot& slot = next_slot();
      on_their_way[queued % kSlots] = &slot;
      std::memset(slot.memory, 0, bytes_of(queued));
      const std::byte* const from = static_cast<const std::byte*>(source) + queued * slot_bytes_;
      driver_.copy(stream_, slot.memory, from, bytes_of(queued));
      slot.used_until = events_.record(stream_);
    }
    const Slot& slot = *on_their_way[chunk % kSlots];
    wait_for(slot);
    std::memcpy(static_cast<std::byte*>(target) + chunk * slot_bytes_, slot.memory,
                bytes_of(chunk));
  }
}

}  // namespace speedo::gpu
