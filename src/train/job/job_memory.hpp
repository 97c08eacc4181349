#pragma once

#include <cstdint>
#include <memory>

#include <speedo/store/record_store.hpp>
#include <speedo/train/trainer.hpp>

#include "store/shared/memory_exchange.hpp"

namespace speedo {

// A master's side of sharing memory with workers of its machine.
struct JobMemory {
  std::shared_ptr<SharedStore> store;  // before the job's; null: no memory is shared
  std::unique_ptr<MemoryDoor> door;    // where workers find it
};

// A machine that cannot do so does without, and says why.
JobMemory share_memory(const TrainerParts& parts, std::shared_ptr<RecordStore> store,
                       std::uint64_t term);

}  // namespace speedo
