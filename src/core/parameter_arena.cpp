#include <speedo/core/parameter_arena.hpp>

#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/round_up.hpp>

namespace speedo {
namespace {

constexpr std::int64_t kAlignmentElements =
    static_cast<std::int64_t>(kArenaAlignmentBytes / sizeof(float));

// Little-endian whatever the machine, so that digests travel.
void append_integer(std::string& bytes, std::int64_t value) {
  auto bits = static_cast<std::uint64_t>(value);
  for (int i = 0; i < 8; ++i, bits >>= 8U) {
    bytes.push_back(static_cast<char>(bits & 0xffU));
  }
}

// Length first: no two lists of strings give the same bytes.
void append_text(std::string& bytes, const std::string& text) {
  append_integer(bytes, static_cast<std::int64_t>(text.size()));
  bytes += text;
}

}  // namespace

std::size_t ParameterLayout::add(ParameterSlot slot) {
  slot.offset = element_count_;
  const std::int64_t end = slot.offset + slot.count();
  element_count_ = round_up(end, kAlignmentElements);
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

std::int64_t ParameterLayout::parameter_count() const {
  std::int64_t total = 0;
  for (const ParameterSlot& slot : slots_) {
    total += slot.count();
  }
  return total;
}

Digest ParameterLayout::digest() const {
  std::string bytes;
  for (const ParameterSlot& slot : slots_) {
    append_text(bytes, slot.layer);
    append_integer(bytes, slot.index);
    append_text(bytes, slot.name);
    append_integer(bytes, slot.shape.axes());
    for (const std::int64_t dim : slot.shape.dims()) {
      append_integer(bytes, dim);
    }
    append_integer(bytes, slot.offset);
  }
  return digest_of(bytes);
}

namespace {

std::size_t bytes_of(std::int64_t element_count) {
  SPEEDO_ASSERT(element_count >= 0);
  return static_cast<std::size_t>(element_count) * sizeof(float);
}

}  // namespace

Result<Arena> Arena::create(Backend& backend, std::int64_t element_count) {
  Arena arena;
  if (element_count > 0) {
    SPEEDO_ASSIGN(arena.buffer_, backend.device().allocate(bytes_of(element_count)));
  }
  arena.size_ = element_count;
  return arena;
}

Result<Arena> Arena::create_shared(Backend& backend, std::int64_t element_count) {
  Arena arena;
  if (element_count > 0) {
    SPEEDO_ASSIGN(arena.buffer_, backend.device().allocate_shared(bytes_of(element_count)));
  }
  arena.size_ = element_count;
  return arena;
}

}  // namespace speedo
