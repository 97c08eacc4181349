#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <speedo/base/result.hpp>

#include "store/shared/memory_exchange.hpp"

namespace speedo {

// A door for processes of this machine and user: a unix socket in the kernel's own name space,
// which no file system has and which goes with its process. Whoever comes is asked for its user by
// the kernel; memory is handed over as descriptors. In a container whose network is its own nobody
// finds it, which is as good as another machine.
//
// A worker sends one packet, DoorHead and the key, with two descriptors: board and values. The
// answer is a DoorHead, with those of the weights, or followed by why not.

// Serves offers on a thread of its own, for what `store` reads and writes. Errors: kUnsupported,
// kUnavailable.
Result<std::unique_ptr<MemoryDoor>> open_memory_door(std::shared_ptr<SharedStore> store,
                                                     std::uint64_t term);

// Goes to the door with each offer.
std::unique_ptr<MemoryExchange> find_memory_door(const std::string& address);

}  // namespace speedo
