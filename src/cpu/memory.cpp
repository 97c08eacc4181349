#include "cpu/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

namespace speedo::cpu {
namespace {

// x86-64's large page. A net's arrays are read through end to end, which with small pages costs a
// walk of the page table every 4 KiB.
constexpr std::size_t kLargePage = std::size_t{2} << 20U;

// The values are undefined; null if there is no room.
void* allocate_raw(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX) return nullptr;
  const bool large = bytes >= 4 * kLargePage;
  const std::size_t alignment = large ? kLargePage : kArenaAlignmentBytes;
  const std::size_t rounded =
      (bytes + kArenaAlignmentBytes - 1) / kArenaAlignmentBytes * kArenaAlignmentBytes;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, rounded) != 0) return nullptr;
  if (large) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  return memory;
}

Buffer buffer_of(void* memory, std::size_t bytes) {
  return Buffer(memory, bytes, [](void* gone) { std::free(gone); });
}

Error no_room_for(std::size_t bytes) {
  return {ErrorCode::kFull,
          fmt::format("no memory for {} bytes; use a smaller batch or net", bytes)};
}

}  // namespace

Result<Buffer> allocate(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  void* memory = allocate_raw(bytes);
  if (memory == nullptr) return no_room_for(bytes);
  std::memset(memory, 0, bytes);
  return buffer_of(memory, bytes);
}

void Scratch::reserve(std::int64_t floats, std::int64_t shared_floats) {
  SPEEDO_ASSERT(floats >= 0);
  SPEEDO_ASSERT(shared_floats >= 0);
  floats_ = std::max(floats_, std::min(floats, kScratchFloatsMax));
  shared_floats_ = std::max(shared_floats_, std::min(shared_floats, kScratchFloatsMax));
}

std::int64_t Scratch::bytes() const {
  const auto blocks = static_cast<std::int64_t>(blocks_.size());
  return (blocks * floats_ + shared_floats_) * static_cast<std::int64_t>(sizeof(float));
}

Result<void> Scratch::provide() {
  for (Buffer& block : blocks_) SPEEDO_TRY(ensure(block, floats_));
  return ensure(shared_, shared_floats_);
}

Result<void> Scratch::ensure(Buffer& block, std::int64_t floats) {
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  if (block.bytes() >= bytes) return {};
  block = Buffer();  // First, so that old and new need not fit together.
  void* memory = allocate_raw(bytes);
  if (memory == nullptr) return no_room_for(bytes);
  block = buffer_of(memory, bytes);
  return {};
}

float* Scratch::take(Buffer& block, std::int64_t floats) {
  SPEEDO_ASSERT(ensure(block, floats).has_value());
  return block.as_floats();
}

}  // namespace speedo::cpu
