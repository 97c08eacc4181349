#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// Which entries of a cache are in use. Every process has a list of its own, a file that it keeps
// locked while it lives: one that is not locked is of a process that has ended, however it did.
//
// Thread safety: from any thread, of which one at a time holds the lock of the cache's room.
class CacheUses {
 public:
  // `folder`: of the lists, made with the first.
  explicit CacheUses(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~CacheUses();
  CacheUses(const CacheUses&) = delete;
  CacheUses& operator=(const CacheUses&) = delete;

  // From here on, until this process ends, the entry is in use. Error: kCannotWrite.
  // Requires: the lock of the room is held.
  Result<void> note(const std::string& entry);

  // The entries that living processes use; lists of others are removed. Error: kCannotWrite if
  // they cannot be read. Requires: the lock of the room is held.
  Result<std::unordered_set<std::string>> all() const;

 private:
  Result<void> begin();
  // Those of others are removed.
  Result<std::vector<std::filesystem::path>> living_lists() const;

  const std::filesystem::path folder_;
  std::filesystem::path file_;  // this process's; empty: none yet
  std::unique_ptr<Descriptor> list_;
  int process_ = 0;  // whose it is: a fork of it must not remove it
  std::unordered_set<std::string> noted_;
};

}  // namespace speedo
