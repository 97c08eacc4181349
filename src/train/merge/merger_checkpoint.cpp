#include "train/merge/merger_checkpoint.hpp"

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {
namespace {

constexpr std::uint64_t kLargeModelInterval = 10;

std::uint64_t interval_of(std::uint64_t wanted, std::uint64_t element_count) {
  if (wanted > 0) return wanted;
  return element_count * sizeof(float) <= kPublishEachMergeBytesMax ? 1 : kLargeModelInterval;
}

}  // namespace

MergerCheckpoint::MergerCheckpoint(std::uint64_t interval, std::uint64_t element_count,
                                   Platform* behind)
    : interval_(interval_of(interval, element_count)), put_(behind) {}

void MergerCheckpoint::write(RecordStore& store, RecordInfo info) {
  info.element_count = memory_.size();
  put_.begin(store, checkpoint_key(), info, memory_);
  merges_ = 0;
  asked_ = false;
}

Result<void> MergerCheckpoint::finish() {
  auto done = put_.finish();
  if (!done) make_due();
  return done;
}

}  // namespace speedo
