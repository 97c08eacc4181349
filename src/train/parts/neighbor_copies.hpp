#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

#include "train/parts/part_clip.hpp"

namespace speedo {

// Copies of a part on the server after its own, for the time when that server and the part's merger
// are gone together: the newest checkpoint, and chunks of the weights, each in the slot that it has
// on the part's own server. What the weights' manifest names is found by that, and no other merger,
// though it only is thought to be gone, writes there.
// Requires: two servers or more. Blocking. Thread safety: one thread at a time.
class NeighborCopies {
 public:
  NeighborCopies(std::shared_ptr<ParameterStore> store, PartClip clip);

  // `whole`: of the weights of all parts.
  std::unique_ptr<PartWriter> write_weights(const RecordInfo& whole, std::uint32_t slot);

 private:
  const std::shared_ptr<ParameterStore> store_;
  const PartClip clip_;
};

// Copies of weights that are put as a whole next, for PartStore::read_copies().
Result<void> put_copies_of_whole(const std::shared_ptr<ParameterStore>& store,
                                 const RecordInfo& whole, std::span<const float> values);

// Removes chunks of weights of so many floats that the store's master or its mergers have put, and
// their copies: those of a part in kRecordSlots slots. Requires: no manifest names them.
void erase_with_copies(PartStore& store, std::uint64_t element_count, std::size_t part,
                       std::uint32_t first_slot);

// A part's checkpoint, and with `has_copy` its copy, which is put first. Whoever puts them, one
// after another, has slots of its own: see PartStore::write_in_turn().
struct PartCheckpointPlace {
  PartClip clip;
  bool has_copy = false;
  std::uint32_t first_slot = 0;
};
std::unique_ptr<RecordWriter> write_part_checkpoint(PartStore& store,
                                                    const PartCheckpointPlace& place,
                                                    const RecordInfo& info);
Result<void> erase_part_checkpoint(PartStore& store, const PartCheckpointPlace& place,
                                   std::uint64_t element_count);
// What puts that were never finished have left of so many floats.
void erase_unfinished(PartStore& store, const PartCheckpointPlace& place,
                      std::uint64_t element_count);

}  // namespace speedo
