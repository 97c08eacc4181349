#include "train/job/job_memory.hpp"

#include <utility>

#include "base/log.hpp"

namespace speedo {

JobMemory share_memory(const TrainerParts& parts, std::shared_ptr<RecordStore> store,
                       std::uint64_t term) {
  JobMemory memory;
  if (!parts.open_door) return memory;
  auto shared = std::make_shared<SharedStore>(std::move(store));
  auto door = parts.open_door(shared, term);
  if (!door) {
    SPEEDO_WARN("no memory is shared with workers of this machine: {}", door.error().message);
    return memory;
  }
  memory.store = std::move(shared);
  memory.door = std::move(*door);
  return memory;
}

}  // namespace speedo
