#include "train/parts/neighbor_copies.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

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
  Result<void> finish() override {
    SPEEDO_TRY(second_->finish());
    return first_->finish();
  }

 private:
  const std::unique_ptr<RecordWriter> first_, second_;
};

}  // namespace

std::unique_ptr<RecordWriter> write_both(std::unique_ptr<RecordWriter> first,
                                         std::unique_ptr<RecordWriter> second) {
  return std::make_unique<TwinWriter>(std::move(first), std::move(second));
}

NeighborCopies::NeighborCopies(std::shared_ptr<ParameterStore> store, PartClip clip)
    : store_(std::move(store)), clip_(clip) {
  SPEEDO_ASSERT(clip_.parts > 1);
}

std::unique_ptr<PartWriter> NeighborCopies::write_weights(const RecordInfo& whole,
                                                          std::uint32_t slot) {
  return store_->write_part(part_copy_key(clip_.part, clip_.parts, weights_key()), whole,
                            {clip_.part, slot});
}

std::string NeighborCopies::checkpoint_key() const {
  return part_copy_key(clip_.part, clip_.parts, speedo::checkpoint_key());
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

}  // namespace speedo
