#include "gpu/library/workspace.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/round_up.hpp>

namespace speedo::gpu {
namespace {

constexpr std::int64_t kWorkAlignment = 256;

}  // namespace

void Workspace::reserve(std::size_t bytes) {
  const std::int64_t rounded = round_up(static_cast<std::int64_t>(bytes), kWorkAlignment);
  reserved_ = std::max(reserved_, static_cast<std::size_t>(rounded));
}

Result<void> Workspace::provide() {
  if (memory_.bytes >= reserved_) return {};
  release();  // First, so that old and new need not fit together.
  Result<void*> made = driver_.allocate(reserved_);
  if (!made && made.error().code == ErrorCode::kFull && make_room_) {
    make_room_();
    made = driver_.allocate(reserved_);
  }
  SPEEDO_ASSIGN(void* const data, std::move(made));
  memory_ = {data, reserved_};
  return {};
}

Result<WorkMemory> Workspace::take(std::size_t bytes) {
  SPEEDO_ASSERT(bytes <= reserved_);
  if (bytes == 0) return WorkMemory{};
  SPEEDO_TRY(provide());
  return WorkMemory{memory_.data, bytes};
}

void Workspace::release() {
  if (memory_.data == nullptr) return;
  driver_.synchronize(stream_);
  driver_.free(memory_.data);
  memory_ = {};
}

}  // namespace speedo::gpu
