#include "train/merge/merger_record.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

Result<MergerRecord> MergerRecord::share(std::span<const float> values, const Digest& model,
                                         std::uint64_t version) {
  SPEEDO_ASSIGN(std::shared_ptr<RecordMemory> memory,
                RecordMemory::create(
                    {.slots = kSlots, .element_count = values.size(), .model = model}));
  memory->open(0, version);
  std::copy(values.begin(), values.end(), memory->slot(0).begin());
  return MergerRecord(std::move(memory));
}

std::span<float> MergerRecord::next(std::uint64_t version) {
  if (!next_) {
    next_ = 0;
    while (next_ == now_ || next_ == kept_) ++*next_;
    SPEEDO_ASSERT(*next_ < kSlots);
  }
  if (memory_) {
    memory_->open(*next_, version);
    return memory_->slot(*next_);
  }
  heap_[*next_].resize(heap_[now_].size());
  return heap_[*next_];
}

void MergerRecord::advance() {
  SPEEDO_ASSERT(next_.has_value());
  now_ = *next_;
  next_.reset();
}

std::span<const float> MergerRecord::keep() {
  SPEEDO_ASSERT(!kept_);
  kept_ = now_;
  return values();
}

}  // namespace speedo
