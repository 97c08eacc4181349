#include "data/batch_tops.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace speedo {

namespace {

Result<Buffer> batch_memory(Device* pinned_by, std::size_t bytes) {
  if (pinned_by != nullptr) return pinned_by->allocate_pinned(bytes);
  void* memory = std::calloc(1, std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) {
    return Error{ErrorCode::kFull, fmt::format("no memory for a batch of {} bytes", bytes)};
  }
  return Buffer(memory, bytes, [](void* gone) { std::free(gone); });
}

}  // namespace

Result<void> BatchTops::fit(const std::vector<Shape>& shapes, Device* pinned_by) {
  std::vector<Buffer> grown(shapes.size());
  memory_.resize(shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::size_t bytes = static_cast<std::size_t>(shapes[i].count()) * sizeof(float);
    if (memory_[i].data() != nullptr && memory_[i].bytes() >= bytes) continue;
    SPEEDO_ASSIGN(grown[i], batch_memory(pinned_by, bytes));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (grown[i].data() != nullptr) memory_[i] = std::move(grown[i]);
  }
  shapes_ = shapes;
  values_.clear();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    values_.emplace_back(memory_[i].as_floats(), static_cast<std::size_t>(shapes[i].count()));
  }
  return {};
}

}  // namespace speedo
