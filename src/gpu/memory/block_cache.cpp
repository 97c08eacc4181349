#include "gpu/memory/block_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo::gpu {
namespace {

constexpr std::size_t kSmallestBlock = 512;
constexpr std::size_t kLargeStep = std::size_t{2} << 20U;
// Sums of what is in use stay in range.
constexpr std::size_t kLargestBlock = SIZE_MAX / 4;

}  // namespace

BlockCache::BlockCache(Driver& driver, EventPool& events, Source source,
                       std::vector<StreamHandle> streams, std::size_t kept_max)
    : driver_(driver),
      events_(events),
      source_(std::move(source)),
      streams_(std::move(streams)),
      kept_max_(kept_max) {}

BlockCache::~BlockCache() {
  drop_unused();
  SPEEDO_ASSERT(used_.empty());
}

// Four sizes between two powers of two, so that few blocks are of use to one request alone; large
// ones, where that would be much waste, in steps of the pages that devices have.
std::size_t BlockCache::block_bytes(std::size_t bytes) const {
  if (kept_max_ == 0) return bytes;
  if (bytes <= kSmallestBlock) return kSmallestBlock;
  const std::size_t step = std::min(std::bit_ceil(bytes) / 8, kLargeStep);
  return (bytes + step - 1) / step * step;
}

Result<void*> BlockCache::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  void* memory = nullptr;
  if (bytes <= kLargestBlock) {
    const std::size_t block = block_bytes(bytes);
    memory = take_unused(block);
    if (memory == nullptr) {
      Result<void*> made = source_.allocate(block);
      if (!made && made.error().code == ErrorCode::kFull && !unused_.empty()) {
        keep_within(0);
        made = source_.allocate(block);
      }
      if (!made && made.error().code != ErrorCode::kFull) return made;
      if (made) memory = *made;
    }
    if (memory != nullptr) {
      used_.emplace(memory, block);
      used_bytes_ += block;
      return memory;
    }
  }
  return Error{ErrorCode::kFull, fmt::format("no room {} for {} bytes; this process uses {} bytes",
                                             source_.place, bytes, used_bytes_)};
}

// Recording an event may have to wait for another thread that records steps, and which may want
// memory of this cache: that goes before the lock.
void BlockCache::give_back(void* memory) {
  Unused block{memory, 0, {}};
  for (const StreamHandle stream : streams_) block.after.push_back(events_.record(stream));
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(memory);
  SPEEDO_ASSERT(found != used_.end());
  block.bytes = found->second;
  used_.erase(found);
  used_bytes_ -= block.bytes;
  kept_bytes_ += block.bytes;
  unused_.push_back(std::move(block));
  // What queued work uses stays a while longer.
  for (auto each = unused_.begin(); each != unused_.end() && kept_bytes_ > kept_max_;) {
    const auto next = std::next(each);
    if (is_free(*each)) drop(each);
    each = next;
  }
}

void BlockCache::drop_unused() {
  const std::lock_guard lock(mutex_);
  keep_within(0);
}

BlockCache::Usage BlockCache::usage() const {
  const std::lock_guard lock(mutex_);
  return {used_bytes_, kept_bytes_};
}

bool BlockCache::is_free(const Unused& block) {
  return std::ranges::all_of(block.after,
                             [&](const EventPool::Mark& each) { return driver_.is_done(*each); });
}

void BlockCache::wait_for(const Unused& block) {
  for (const EventPool::Mark& each : block.after) driver_.synchronize(*each);
}

void* BlockCache::take_unused(std::size_t bytes) {
  auto best = unused_.end();
  for (auto each = unused_.begin(); each != unused_.end(); ++each) {
    if (each->bytes != bytes) continue;
    if (best == unused_.end()) best = each;
    if (is_free(*each)) {
      best = each;
      break;
    }
  }
  if (best == unused_.end()) return nullptr;
  wait_for(*best);
  void* const memory = best->memory;
  kept_bytes_ -= best->bytes;
  unused_.erase(best);
  return memory;
}

void BlockCache::keep_within(std::size_t bytes) {
  while (kept_bytes_ > bytes) {
    wait_for(unused_.front());
    drop(unused_.begin());
  }
}

void BlockCache::drop(std::list<Unused>::iterator block) {
  source_.free(block->memory);
  kept_bytes_ -= block->bytes;
  unused_.erase(block);
}

}  // namespace speedo::gpu
