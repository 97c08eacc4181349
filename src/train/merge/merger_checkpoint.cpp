#include "train/merge/merger_checkpoint.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {
namespace {

constexpr std::uint64_t kLargeModelInterval = 10;

}  // namespace

std::uint64_t checkpoint_interval(std::uint64_t wanted, std::uint64_t element_count) {
  if (wanted > 0) return wanted;
  return element_count * sizeof(float) <= kPublishEachMergeBytesMax ? 1 : kLargeModelInterval;
}

MergerCheckpoint::MergerCheckpoint(std::uint64_t interval, std::uint64_t element_count,
                                   Platform* behind)
    : interval_(checkpoint_interval(interval, element_count)), put_(behind) {}

void MergerCheckpoint::fill(
    std::span<const float> weights, std::size_t history_count,
    const std::function<void(std::size_t index, std::span<float> target)>& read) {
  SPEEDO_ASSERT(!is_under_way());
  memory_.resize(weights.size() * (1 + history_count));
  std::ranges::copy(weights, memory_.begin());
  for (std::size_t i = 0; i < history_count; ++i) {
    read(i, std::span(memory_).subspan(weights.size() * (1 + i), weights.size()));
  }
}

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
