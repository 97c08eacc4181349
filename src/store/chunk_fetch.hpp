#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include <speedo/base/result.hpp>

#include "store/key_value.hpp"
#include "store/record_codec.hpp"

namespace speedo {

// Asks for the chunk under `key`; `target` has its exact size and belongs to the operation until it
// is done.
KvPtr fetch_chunk(KeyValue& map, std::string key, std::span<float> target);

// Waits for it. `is_wanted`: whether the chunk that came is of the record that is read. Errors:
// those of the map; kNotFound if it is gone or not wanted; kCorrupt if it does not fit itself.
// `what` names it in an error.
Result<ChunkHead> take_chunk(const KvOperation& operation, std::size_t chunk,
                             const std::function<bool(const ChunkHead&)>& is_wanted,
                             const std::string& what);

}  // namespace speedo
