#include "store/shared/record_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/round_up.hpp>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

constexpr std::uint64_t kMagic = 0x314F444545505353;  // "SSPEEDO1", little-endian
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kSlotsMax = 16;
constexpr std::uint64_t kNoVersion = std::numeric_limits<std::uint64_t>::max();

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(BoardHead) == 6 * kWord && sizeof(SlotHead) == 6 * kWord);

std::size_t mark_count(const RecordShape& shape) {
  return shape.slots * chunk_count(shape.element_count);
}

std::size_t board_bytes(const RecordShape& shape) {
  return sizeof(BoardHead) + shape.slots * sizeof(SlotHead) + mark_count(shape) * kWord;
}

std::size_t head_at(std::size_t slot) { return sizeof(BoardHead) + slot * sizeof(SlotHead); }

std::size_t mark_at(const RecordShape& shape, std::size_t slot, std::size_t chunk) {
  return head_at(shape.slots) + (slot * chunk_count(shape.element_count) + chunk) * kWord;
}

// A word of a board. Readers have it mapped for reading only, which a load does not mind.
std::atomic_ref<std::uint64_t> word_at(const SharedMemory& board, std::size_t byte) {
  SPEEDO_ASSERT(byte + kWord <= board.bytes());
  return std::atomic_ref<std::uint64_t>(
      *reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(board.data() + byte)));
}

std::uint64_t load(const SharedMemory& board, std::size_t byte) {
  return word_at(board, byte).load(std::memory_order_acquire);
}

void store(const SharedMemory& board, std::size_t byte, std::uint64_t value) {
  word_at(board, byte).store(value, std::memory_order_release);
}

std::size_t generation_at(std::size_t slot) {
  return head_at(slot) + offsetof(SlotHead, generation);
}
std::size_t version_at(std::size_t slot) { return head_at(slot) + offsetof(SlotHead, version); }
std::size_t finished_at(std::size_t slot) { return head_at(slot) + offsetof(SlotHead, finished); }
std::size_t base_at(std::size_t slot) { return head_at(slot) + offsetof(SlotHead, base_version); }
std::size_t worker_at(std::size_t slot) { return head_at(slot) + offsetof(SlotHead, worker); }
std::size_t term_at(std::size_t slot) { return head_at(slot) + offsetof(SlotHead, term); }
constexpr std::size_t kNewestAt = offsetof(BoardHead, newest);

}  // namespace

std::size_t RecordMemory::slot_elements(const RecordShape& shape) {
  constexpr std::int64_t kLine = kArenaAlignmentBytes / sizeof(float);
  return static_cast<std::size_t>(
      round_up(static_cast<std::int64_t>(shape.element_count), kLine));
}

Result<std::shared_ptr<RecordMemory>> RecordMemory::create(const RecordShape& shape,
                                                           std::shared_ptr<SharedMemory> values) {
  SPEEDO_ASSERT(shape.slots > 0 && shape.slots <= kSlotsMax && shape.element_count > 0);
  const std::size_t elements =
      (shape.slots - 1) * slot_elements(shape) + static_cast<std::size_t>(shape.element_count);
  SPEEDO_ASSERT(values != nullptr && elements * sizeof(float) <= values->bytes());
  SPEEDO_ASSIGN(std::shared_ptr<SharedMemory> board, SharedMemory::create(board_bytes(shape)));
  const BoardHead head{.magic = kMagic,
                       .slots = shape.slots,
                       .element_count = shape.element_count,
                       .model_high = shape.model.high,
                       .model_low = shape.model.low};
  std::memcpy(board->data(), &head, sizeof(head));
  std::unique_ptr<RecordMemory> made(new RecordMemory(shape, std::move(board), values));
  return std::shared_ptr<RecordMemory>(std::move(made));
}

Result<std::shared_ptr<RecordMemory>> RecordMemory::create(const RecordShape& shape) {
  SPEEDO_ASSIGN(std::shared_ptr<SharedMemory> values,
                SharedMemory::create(shape.slots * slot_elements(shape) * sizeof(float)));
  return create(shape, std::move(values));
}

RecordMemory::RecordMemory(const RecordShape& shape, std::shared_ptr<SharedMemory> board,
                           std::shared_ptr<SharedMemory> values)
    : shape_(shape),
      board_(std::move(board)),
      values_(std::move(values)),
      board_view_(board_),
      values_view_(values_) {}

void RecordMemory::withdraw() {
  for (std::size_t slot = 0; slot < shape_.slots; ++slot) open(slot, kNoVersion);
}

std::span<float> RecordMemory::slot(std::size_t slot) const {
  SPEEDO_ASSERT(slot < shape_.slots);
  float* const first = reinterpret_cast<float*>(values_->data());
  return {first + slot * slot_elements(shape_), static_cast<std::size_t>(shape_.element_count)};
}

std::optional<std::size_t> RecordMemory::slot_of(const float* values) const {
  const auto at = reinterpret_cast<std::uintptr_t>(values);
  const auto first = reinterpret_cast<std::uintptr_t>(values_->data());
  if (at < first) return std::nullopt;
  const std::size_t slot = (at - first) / sizeof(float) / slot_elements(shape_);
  if (slot >= shape_.slots) return std::nullopt;
  return slot;
}

void RecordMemory::open(std::size_t slot, std::uint64_t version) {
  SPEEDO_ASSERT(slot < shape_.slots);
  store(*board_, version_at(slot), kNoVersion);  // No number belongs to two generations.
  store(*board_, generation_at(slot), ++generation_);
  store(*board_, version_at(slot), version);
  // What is written into the slot from here on is written after that.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// A kernel may have written past the caches, which only a full fence orders.
void RecordMemory::show(std::size_t slot, std::size_t chunk) {
  SPEEDO_ASSERT(slot < shape_.slots && chunk < chunk_count(shape_.element_count));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  store(*board_, mark_at(shape_, slot, chunk), load(*board_, generation_at(slot)));
}

void RecordMemory::finish(std::size_t slot, const RecordInfo& info) {
  SPEEDO_ASSERT(slot < shape_.slots && info.element_count == shape_.element_count);
  SPEEDO_ASSERT(load(*board_, version_at(slot)) == info.version);
  store(*board_, base_at(slot), info.base_version);
  store(*board_, worker_at(slot), info.worker);
  store(*board_, term_at(slot), info.term);
  store(*board_, finished_at(slot), load(*board_, generation_at(slot)));
  store(*board_, kNewestAt, slot + 1);
}

Result<std::shared_ptr<const SharedRecord>> SharedRecord::make(
    std::shared_ptr<const SharedMemory> board, std::shared_ptr<const SharedMemory> values) {
  SPEEDO_ASSERT(board != nullptr && values != nullptr);
  const Error unknown{ErrorCode::kMismatch,
                      "what another process gives to be shared is no record of this version of "
                      "SpeeDO; use the same version for master and workers"};
  if (board->bytes() < sizeof(BoardHead)) return unknown;
  BoardHead head;
  std::memcpy(&head, board->data(), sizeof(head));
  const RecordShape shape{.slots = static_cast<std::size_t>(head.slots),
                          .element_count = head.element_count,
                          .model = {.high = head.model_high, .low = head.model_low}};
  const std::uint64_t room = values->bytes() / sizeof(float);
  const bool fits = head.magic == kMagic && head.slots > 0 && head.slots <= kSlotsMax &&
                    head.element_count > 0 && head.element_count <= room &&
                    (shape.slots - 1) * RecordMemory::slot_elements(shape) <=
                        room - head.element_count &&
                    board_bytes(shape) <= board->bytes();
  if (!fits) return unknown;
  std::unique_ptr<SharedRecord> made(new SharedRecord(shape, std::move(board), values));
  return std::shared_ptr<const SharedRecord>(std::move(made));
}

SharedRecord::Version SharedRecord::version_in(std::size_t slot, std::uint64_t generation) const {
  Version version{.slot = slot, .generation = generation, .info = {}};
  version.info.model = shape_.model;
  version.info.element_count = shape_.element_count;
  version.info.version = load(*board_, version_at(slot));
  version.info.base_version = load(*board_, base_at(slot));
  version.info.worker = load(*board_, worker_at(slot));
  version.info.term = load(*board_, term_at(slot));
  return version;
}

std::optional<SharedRecord::Version> SharedRecord::newest() const {
  const std::uint64_t newest = load(*board_, kNewestAt);
  if (newest == 0 || newest > shape_.slots) return std::nullopt;
  const auto slot = static_cast<std::size_t>(newest - 1);
  const std::uint64_t generation = load(*board_, generation_at(slot));
  if (generation == 0 || load(*board_, finished_at(slot)) != generation) {
    return std::nullopt;
  }
  const Version version = version_in(slot, generation);
  return is_still(version) ? std::optional(version) : std::nullopt;
}

std::optional<SharedRecord::Version> SharedRecord::begun(std::uint64_t number) const {
  for (std::size_t slot = 0; slot < shape_.slots; ++slot) {
    const std::uint64_t generation = load(*board_, generation_at(slot));
    if (generation == 0) continue;
    const Version version = version_in(slot, generation);
    if (version.info.version == number && is_still(version)) return version;
  }
  return std::nullopt;
}

bool SharedRecord::has(const Version& version, std::size_t chunk) const {
  SPEEDO_ASSERT(chunk < chunk_count(shape_.element_count));
  return load(*board_, mark_at(shape_, version.slot, chunk)) == version.generation &&
         is_still(version);
}

std::span<const float> SharedRecord::chunk(const Version& version, std::size_t chunk) const {
  const float* const first = reinterpret_cast<const float*>(values_->data()) +
                             version.slot * RecordMemory::slot_elements(shape_);
  return chunk_of(
      std::span<const float>(first, static_cast<std::size_t>(shape_.element_count)), chunk);
}

// What was read before is not read later than this.
bool SharedRecord::is_still(const Version& version) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return load(*board_, generation_at(version.slot)) == version.generation;
}

}  // namespace speedo
