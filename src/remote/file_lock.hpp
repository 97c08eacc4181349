#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// How long a lock is waited for.
struct LockPatience {
  std::function<bool()> stopped = {};     // gives up when true; empty: never
  std::function<void()> on_waiting = {};  // called once, when somebody else has the lock
};

// Locks a file, made if there is none, against other processes and threads, for as long as the
// result lives; anew where the file was removed while it was waited for. Errors: kUnavailable when
// stopped, no_cache().
Result<std::unique_ptr<Descriptor>> lock_file(const std::filesystem::path& path,
                                              const LockPatience& patience);

// The same without waiting: null if somebody else has it, or if there is no such file.
std::unique_ptr<Descriptor> try_lock_file(const std::filesystem::path& path);

// What the cache cannot do there, and why. kCannotWrite, naming --data-cache.
Error no_cache(const std::filesystem::path& path, const std::string& why);

}  // namespace speedo
