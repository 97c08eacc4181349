#include "cpu/memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

namespace speedo::cpu {

Result<Buffer> allocate(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  void* memory = nullptr;
  if (bytes <= PTRDIFF_MAX) {
    const std::size_t rounded =
        (bytes + kArenaAlignmentBytes - 1) / kArenaAlignmentBytes * kArenaAlignmentBytes;
    memory = std::aligned_alloc(kArenaAlignmentBytes, rounded);
  }
  if (memory == nullptr) {
    return Error{ErrorCode::kFull,
                 fmt::format("no memory for {} bytes; use a smaller batch or net", bytes)};
  }
  std::memset(memory, 0, bytes);
  return Buffer(memory, bytes, [](void* gone) { std::free(gone); });
}

Result<void> Scratch::reserve(std::int64_t floats) {
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  for (Buffer& block : blocks_) {
    if (block.bytes() >= bytes) continue;
    block = Buffer();  // First, so that old and new need not fit together.
    SPEEDO_ASSIGN(block, allocate(bytes));
  }
  return {};
}

}  // namespace speedo::cpu
