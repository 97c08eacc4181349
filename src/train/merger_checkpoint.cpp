#include "train/merger_checkpoint.hpp"

#include <span>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

constexpr std::uint64_t kLargeModelInterval = 10;

std::uint64_t interval_of(std::uint64_t wanted, std::uint64_t element_count) {
  if (wanted > 0) return wanted;
  return element_count * sizeof(float) <= kPublishEachMergeBytesMax ? 1 : kLargeModelInterval;
}

}  // namespace

MergerCheckpoint::MergerCheckpoint(std::uint64_t interval, std::uint64_t element_count)
    : interval_(interval_of(interval, element_count)) {}

void MergerCheckpoint::write(RecordStore& store, RecordInfo info) {
  SPEEDO_ASSERT(!is_under_way());
  info.element_count = memory_.size();
  writer_ = store.write(checkpoint_key(), info);
  for (std::size_t chunk = 0; chunk < chunk_count(memory_.size()); ++chunk) {
    writer_->write(chunk, chunk_of(std::span<const float>(memory_), chunk));
  }
  merges_ = 0;
  asked_ = false;
}

Result<void> MergerCheckpoint::finish() {
  SPEEDO_ASSERT(is_under_way());
  const std::unique_ptr<RecordWriter> writer = std::move(writer_);
  auto done = writer->finish();
  if (!done) make_due();
  return done;
}

}  // namespace speedo
