#include "train/parts/neighbor_copies.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

// Writes a record and a second one alike; what the first says of its end counts once the second is
// there.
class TwinWriter : public RecordWriter {
 public:
  TwinWriter(std::unique_ptr<RecordWriter> first, std::unique_ptr<RecordWriter> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  void write(std::size_t chunk, std::span<const float> values) override {
    first_->write(chunk, values);
    second_->write(chunk, values);
  }
  void set_state(std::string state) override { first_->set_state(std::move(state)); }
  bool is_sent() const override { return first_->is_sent() && second_->is_sent(); }
  // Of a copy that a later merger has put already, the record itself may be still to come: it is
  // ended too, and either removes what it wrote or is replaced.
  Result<void> finish() override {
    auto second = second_->finish();
    if (!second && second.error().code != ErrorCode::kSuperseded) return second;
    auto first = first_->finish();
    return second ? first : second;
  }

 private:
  const std::unique_ptr<RecordWriter> first_, second_;
};

// The part's own, then its copy's.
std::vector<std::string> keys_of(const PartCheckpointPlace& place) {
  const auto& [part, parts] = place.clip;
  std::vector<std::string> keys = {part_key(part, checkpoint_key())};
  if (place.has_copy) keys.push_back(part_copy_key(part, parts, checkpoint_key()));
  return keys;
}

}  // namespace

NeighborCopies::NeighborCopies(std::shared_ptr<ParameterStore> store, PartClip clip)
    : store_(std::move(store)), clip_(clip) {
  SPEEDO_ASSERT(clip_.parts > 1);
}

std::unique_ptr<PartWriter> NeighborCopies::write_weights(const RecordInfo& whole,
                                                          std::uint32_t slot) {
  return store_->write_part(part_copy_key(clip_.part, clip_.parts, weights_key()), whole,
                            {clip_.part, slot});
}

Result<void> put_copies_of_whole(const std::shared_ptr<ParameterStore>& store,
                                 const RecordInfo& whole, std::span<const float> values) {
  const std::size_t chunks = chunk_count(whole.element_count), parts = store->parts();
  for (std::size_t part = 0; part < std::min(parts, chunks); ++part) {
    const auto copy = NeighborCopies(store, {part, parts}).write_weights(whole, 0);
    for (std::size_t chunk = part; chunk < chunks; chunk += parts) {
      copy->write(chunk, chunk_of(values, chunk));
    }
    SPEEDO_TRY(copy->finish());
  }
  return {};
}

void erase_with_copies(PartStore& store, std::uint64_t element_count, std::size_t part,
                       std::uint32_t first_slot) {
  const PartStore::Copies slots{first_slot, first_slot + kRecordSlots, part};
  store.erase_copies(weights_key(), element_count, slots);
  if (store.parts() == 1) return;
  store.erase_copies(part_copy_key(part, store.parts(), weights_key()), element_count, slots);
}

std::unique_ptr<RecordWriter> write_part_checkpoint(PartStore& store,
                                                    const PartCheckpointPlace& place,
                                                    const RecordInfo& info) {
  std::vector<std::unique_ptr<RecordWriter>> writers;
  for (const std::string& key : keys_of(place)) {
    writers.push_back(store.write_in_turn(key, info, place.first_slot));
  }
  if (writers.size() == 1) return std::move(writers[0]);
  return std::make_unique<TwinWriter>(std::move(writers[0]), std::move(writers[1]));
}

Result<void> erase_part_checkpoint(PartStore& store, const PartCheckpointPlace& place,
                                   std::uint64_t element_count) {
  const auto keys = keys_of(place);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    SPEEDO_TRY(store.erase_in_turn(*key, element_count, place.first_slot));
  }
  return {};
}

void erase_unfinished(PartStore& store, const PartCheckpointPlace& place,
                      std::uint64_t element_count) {
  for (const std::string& key : keys_of(place)) {
    store.erase_unfinished(key, element_count, place.first_slot);
  }
}

}  // namespace speedo
