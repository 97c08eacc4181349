#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"
#include "remote/cache_uses.hpp"

namespace speedo {

// How an entry is called in lists of uses: by the names of its folder and its file in the cache.
std::string cache_entry_name(std::string_view folder, std::string_view file);

// How much the files of a cache take, and the removal of what nobody uses where that is too much:
// what was asked for longest ago goes first. Touched is what has a record of the cache, and is as
// the record says, and what a process that was killed left beside a lock of the cache before it
// wrote the record; other files in its folder are neither counted nor removed.
//
// The file of the lock has the sum as it was last counted and what has come since then, so that
// files are listed only where that comes to the limit. It may say too much, never too little.
class CacheRoom {
 public:
  struct Incoming {
    std::string entry;  // its former copy, or a part that has come before, does not count
    std::string shown;
    std::uint64_t bytes = 0;
  };
  // `bytes_max`: 0: no limit.
  CacheRoom(std::filesystem::path cache, std::uint64_t bytes_max)
      : cache_(std::move(cache)), bytes_max_(bytes_max) {}

  // Counts what is to come, and makes room for it. Errors: kFull, with the figures, if what is in
  // use leaves too little; kCannotWrite. Requires: `lock`, that of the room, is held.
  Result<void> make(const Descriptor& lock, const CacheUses& uses, const Incoming& incoming) const;

 private:
  const std::filesystem::path cache_;
  const std::uint64_t bytes_max_;
};

}  // namespace speedo
