#include "store/shared/in_place_writer.hpp"

#include <cstring>
#include <utility>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

InPlaceWriter::InPlaceWriter(std::shared_ptr<RecordMemory> memory, RecordInfo info,
                             std::unique_ptr<RecordWriter> copy)
    : memory_(std::move(memory)),
      info_(std::move(info)),
      copy_(std::move(copy)),
      left_(chunk_count(info_.element_count)) {
  SPEEDO_ASSERT(info_.element_count == memory_->shape().element_count);
}

InPlaceWriter::~InPlaceWriter() {
  if (!finished_ && slot_) memory_->open(*slot_, info_.version);
}

void InPlaceWriter::write(std::size_t chunk, std::span<const float> values) {
  const auto lies_in = memory_->slot_of(values.data());
  const std::size_t slot = lies_in.value_or(0);
  SPEEDO_ASSERT(lies_in || memory_->shape().slots == 1);
  SPEEDO_ASSERT(left_ > 0 && (!slot_ || *slot_ == slot));
  slot_ = slot;
  const std::span<float> place = chunk_of(memory_->slot(slot), chunk);
  SPEEDO_ASSERT(values.size() == place.size());
  if (values.data() != place.data()) {
    SPEEDO_ASSERT(!lies_in);
    std::memcpy(place.data(), values.data(), values.size_bytes());
  }
  memory_->show(slot, chunk);
  --left_;
  if (copy_) copy_->write(chunk, place);
}

void InPlaceWriter::set_state(std::string state) {
  if (copy_) copy_->set_state(std::move(state));
}

Result<void> InPlaceWriter::finish() {
  SPEEDO_ASSERT(left_ == 0 && slot_);
  if (copy_) SPEEDO_TRY(copy_->finish());
  memory_->finish(*slot_, info_);
  finished_ = true;
  return {};
}

}  // namespace speedo
