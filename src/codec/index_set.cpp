#include "codec/index_set.hpp"

#include <algorithm>
#include <cstring>

#include <speedo/base/assert.hpp>

#include "base/simd.hpp"
#include "codec/bits.hpp"

namespace speedo {
namespace index_kernels {

SPEEDO_MULTIVERSION void mark(std::size_t n, const float* x, std::int32_t least,
                              std::uint64_t* words) {
  std::uint8_t flags[64];
  for (std::size_t word = 0; word < n / 64; ++word) {
    const float* const from = x + 64 * word;
    for (std::size_t i = 0; i < 64; ++i) flags[i] = magnitude_bits(from[i]) >= least ? 1 : 0;
    words[word] = pack_flags(flags);
  }
}

// A loop of its own, since only newer instruction sets can count bits.
SPEEDO_MULTIVERSION std::size_t count_bits(std::size_t n, const std::uint64_t* words) {
  std::size_t bits = 0;
  for (std::size_t word = 0; word < n; ++word) {
    bits += static_cast<std::size_t>(std::popcount(words[word]));
  }
  return bits;
}

}  // namespace index_kernels

namespace {

constexpr unsigned kGapBits = 7;
constexpr unsigned kGapMore = 1U << kGapBits;
// Above a gap's last bit.
constexpr unsigned kGapEnd = 3 * kGapBits;
static_assert(kCodecElementsMax <= std::size_t{1} << kGapEnd);

std::size_t gap_bytes(std::size_t gap) {
  std::size_t bytes = 1;
  while (gap >>= kGapBits) ++bytes;
  return bytes;
}

}  // namespace

IndexSet::IndexSet(std::size_t count) : count_(count) {
  SPEEDO_ASSERT(count <= kCodecElementsMax);
  std::fill_n(words_.begin(), word_count(), 0);
}

void IndexSet::mark_from(std::span<const float> values, float least) {
  SPEEDO_ASSERT(values.size() == count_);
  const std::int32_t bits = magnitude_bits(least);
  index_kernels::mark(count_, values.data(), bits, words_.data());
  if (count_ % 64 == 0) return;
  std::uint64_t last = 0;
  for (std::size_t i = count_ - count_ % 64; i < count_; ++i) {
    last |= std::uint64_t{magnitude_bits(values[i]) >= bits} << (i % 64);
  }
  words_[word_count() - 1] = last;
}

void IndexSet::unmark(std::size_t index) {
  SPEEDO_ASSERT(index < count_);
  words_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}

std::size_t IndexSet::size() const {
  return index_kernels::count_bits(word_count(), words_.data());
}

std::size_t IndexSet::bytes_max(std::size_t count) { return bit_bytes(count); }

IndexSet::Form IndexSet::shorter_form() const {
  // Each gap takes a byte or more.
  if (size() >= bit_bytes(count_)) return Form::kBitmap;
  std::size_t bytes = 0, next = 0;
  for_each([&](std::size_t index) {
    bytes += gap_bytes(index - next);
    next = index + 1;
  });
  return bytes < bit_bytes(count_) ? Form::kGaps : Form::kBitmap;
}

std::size_t IndexSet::write(Form form, std::byte* target) const {
  if (form == Form::kBitmap) {
    std::memcpy(target, words_.data(), bit_bytes(count_));
    return bit_bytes(count_);
  }
  std::byte* const start = target;
  std::size_t next = 0;
  for_each([&](std::size_t index) {
    std::size_t gap = index - next;
    next = index + 1;
    for (; gap >= kGapMore; gap >>= kGapBits) {
      *target++ = static_cast<std::byte>(gap % kGapMore + kGapMore);
    }
    *target++ = static_cast<std::byte>(gap);
  });
  return static_cast<std::size_t>(target - start);
}

std::optional<std::size_t> IndexSet::read(Form form, std::size_t size,
                                          std::span<const std::byte> bytes) {
  std::fill_n(words_.begin(), word_count(), 0);
  return form == Form::kBitmap ? read_bitmap(size, bytes) : read_gaps(size, bytes);
}

std::optional<std::size_t> IndexSet::read_bitmap(std::size_t size,
                                                 std::span<const std::byte> bytes) {
  if (bytes.size() < bit_bytes(count_)) return std::nullopt;
  std::memcpy(words_.data(), bytes.data(), bit_bytes(count_));
  if (count_ % 64 != 0 && words_[word_count() - 1] >> (count_ % 64) != 0) return std::nullopt;
  if (this->size() != size) return std::nullopt;
  return bit_bytes(count_);
}

std::optional<std::size_t> IndexSet::read_gaps(std::size_t size, std::span<const std::byte> bytes) {
  std::size_t at = 0, next = 0;
  for (std::size_t entry = 0; entry < size; ++entry) {
    std::size_t gap = 0;
    unsigned byte = kGapMore;
    for (unsigned shift = 0; byte >= kGapMore; shift += kGapBits) {
      if (at == bytes.size() || shift == kGapEnd) return std::nullopt;
      byte = std::to_integer<unsigned>(bytes[at++]);
      gap += std::size_t{byte % kGapMore} << shift;
      if (byte == 0 && shift > 0) return std::nullopt;  // a longer number than its value needs
    }
    if (gap >= count_ - next) return std::nullopt;
    next += gap;
    words_[next / 64] |= std::uint64_t{1} << (next % 64);
    ++next;
  }
  return at;
}

}  // namespace speedo
