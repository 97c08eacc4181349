#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/chunked_store.hpp"

namespace speedo {

// Chunks that no manifest will name any more.
struct ChunkGarbage {
  std::uint64_t term = 0;
  std::uint32_t first_slot = 0, end_slot = 0;
  std::size_t first_chunk = 0, end_chunk = 0;
  std::size_t stride = 1;  // only each so many-th
  // The incarnation of the manifest's server that knows of it: one without its last second may name
  // them again. 0: any.
  std::uint64_t manifest_server = 0;
};

// Of another term, which a put has replaced; `server`: the incarnation that took its manifest.
// False if some stay.
bool erase_replaced(StoreShared& shared, std::string_view key, const RecordTrack& track,
                    std::uint64_t server);

// Removes them. What cannot be removed stays, at most until clear(), with a warning: then false.
bool erase_chunks(StoreShared& shared, std::string_view key, const ChunkGarbage& garbage);

// See ParameterStore::erase_unnamed().
Result<void> erase_unnamed(StoreShared& shared);

}  // namespace speedo
