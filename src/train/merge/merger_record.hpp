#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>

#include "store/shared/record_memory.hpp"

namespace speedo {

// The floats that a master publishes as its weights' record, and room for the next version of them:
// on the heap, or in memory that workers of this machine read.
// Thread safety: one thread at a time.
class MergerRecord {
 public:
  explicit MergerRecord(std::vector<float> values) : heap_{std::move(values), {}, {}} {}
  // In shared memory, with these values as `version`, which is not shown yet.
  static Result<MergerRecord> share(std::span<const float> values, const Digest& model,
                                    std::uint64_t version);
  MergerRecord(MergerRecord&&) = default;
  MergerRecord& operator=(MergerRecord&&) = default;

  std::size_t size() const { return values().size(); }
  std::span<const float> values() const { return place(now_); }
  // Room for this version; nothing that was there before counts any more. The same until advance().
  std::span<float> next(std::uint64_t version);
  // What next() has given becomes the values.
  void advance();

  // Keeps the values as they are now, whatever follows, until release(). Requires: nothing is kept.
  std::span<const float> keep();
  void release() { kept_.reset(); }

  // Null: on the heap.
  const std::shared_ptr<RecordMemory>& memory() const { return memory_; }

 private:
  // The one that is read, the one that is written, and one that may be kept.
  static constexpr std::size_t kSlots = 3;
  explicit MergerRecord(std::shared_ptr<RecordMemory> memory) : memory_(std::move(memory)) {}
  std::span<const float> place(std::size_t slot) const {
    return memory_ ? std::span<const float>(memory_->slot(slot))
                   : std::span<const float>(heap_[slot]);
  }

  std::vector<float> heap_[kSlots];  // unused where there is shared memory
  std::shared_ptr<RecordMemory> memory_;
  std::size_t now_ = 0;
  std::optional<std::size_t> next_, kept_;
};

}  // namespace speedo
