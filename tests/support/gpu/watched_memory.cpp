#include "support/gpu/watched_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo::test {
namespace {

constexpr std::size_t kArenaBytes = std::size_t{1} << 35U;
constexpr std::size_t kWatchedPage = 4096;
// Blocks of this size or more begin where pages of it do: they take the system one fault each for
// 512, and all of a block is written first.
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
constexpr std::size_t kZoneBytes = 256;
constexpr std::byte kZoneByte{0x5a};

// The pages that can be followed.
std::size_t pages_of(std::size_t bytes) {
  return (bytes + 2 * kZoneBytes + kWatchedPage - 1) / kWatchedPage * kWatchedPage;
}

bool is_zone(const std::byte* first, const std::byte* last) {
  for (; first != last; ++first) {
    if (*first != kZoneByte) return false;
  }
  return true;
}

void allow(const WatchedMemory::Block& block, int rights) {
  SPEEDO_ASSERT(mprotect(block.data - kZoneBytes, pages_of(block.bytes), rights) == 0);
}

}  // namespace

void spoil(void* memory, std::size_t bytes) {
  auto* const first = static_cast<std::byte*>(memory);
  constexpr std::uint32_t kWord = WatchedMemory::kPoison;
  const std::size_t words = bytes / sizeof(kWord);
  if (reinterpret_cast<std::uintptr_t>(memory) % alignof(std::uint32_t) == 0) {
    std::fill_n(static_cast<std::uint32_t*>(memory), words, kWord);
  } else {
    for (std::size_t i = 0; i < words; ++i)
      std::memcpy(first + i * sizeof(kWord), &kWord, sizeof(kWord));
  }
  std::memcpy(first + words * sizeof(kWord), &kWord, bytes % sizeof(kWord));
}

std::optional<std::size_t> find_poison(const void* memory, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(memory);
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes; at += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, first + at, sizeof(word));
    if (word == WatchedMemory::kPoison) return at;
  }
  return std::nullopt;
}

std::string WatchedMemory::Block::name() const {
  return fmt::format("block {} of {} bytes", fmt::ptr(data), bytes);
}

WatchedMemory::WatchedMemory(bool guarded) : guarded_(guarded) {
  void* const addresses =
      mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SPEEDO_ASSERT(addresses != MAP_FAILED);
  addresses_ = static_cast<std::byte*>(addresses);
  used_ = up_to_huge_page(0);
  madvise(addresses_, kArenaBytes, MADV_HUGEPAGE);
}

WatchedMemory::~WatchedMemory() { munmap(addresses_, kArenaBytes); }

WatchedMemory::Block& WatchedMemory::allocate(std::size_t bytes) {
  SPEEDO_ASSERT(bytes > 0 && bytes < kArenaBytes);
  const std::size_t length = pages_of(bytes);
  if (length >= kHugePage) used_ = up_to_huge_page(used_);
  std::byte* const pages = addresses_ + used_;
  used_ += length + kWatchedPage;
  SPEEDO_ASSERT(used_ <= kArenaBytes);
  SPEEDO_ASSERT(mprotect(pages, length, PROT_READ | PROT_WRITE) == 0);
  std::memset(pages, static_cast<int>(kZoneByte), kZoneBytes);
  Block& block = blocks_[pages];
  block.data = pages + kZoneBytes;
  block.bytes = bytes;
  spoil(block.data, bytes);
  std::memset(block.data + bytes, static_cast<int>(kZoneByte), length - kZoneBytes - bytes);
  if (guarded_) allow(block, PROT_NONE);
  return block;
}

std::size_t WatchedMemory::up_to_huge_page(std::size_t offset) const {
  const auto place = reinterpret_cast<std::uintptr_t>(addresses_) + offset;
  return offset + (kHugePage - place % kHugePage) % kHugePage;
}

bool WatchedMemory::release(Block& block) {
  block.is_alive = false;
  std::byte* const pages = block.data - kZoneBytes;
  SPEEDO_ASSERT(!block.is_open);
  if (guarded_) allow(block, PROT_READ);
  const bool was_intact = is_intact(block);
  madvise(pages, pages_of(block.bytes), MADV_DONTNEED);
  allow(block, PROT_NONE);
  return was_intact;
}

bool WatchedMemory::has(const void* address) const {
  const auto* const place = static_cast<const std::byte*>(address);
  return place >= addresses_ && place < addresses_ + used_;
}

WatchedMemory::Block* WatchedMemory::find(const void* address) {
  if (!has(address)) return nullptr;
  return &std::prev(blocks_.upper_bound(static_cast<const std::byte*>(address)))->second;
}

void WatchedMemory::open(Block& block) {
  if (!guarded_ || block.is_open || !has(block.data)) return;
  allow(block, PROT_READ | PROT_WRITE);
  block.is_open = true;
  open_.push_back(&block);
}

void WatchedMemory::close() {
  for (Block* const block : open_) {
    allow(*block, PROT_NONE);
    block->is_open = false;
  }
  open_.clear();
}

bool WatchedMemory::is_intact(const Block& block) {
  const std::byte* const pages = block.data - kZoneBytes;
  return is_zone(pages, block.data) &&
         is_zone(block.data + block.bytes, pages + pages_of(block.bytes));
}

}  // namespace speedo::test
