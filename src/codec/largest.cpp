#include "codec/largest.hpp"

#include <algorithm>
#include <array>

#include <speedo/base/assert.hpp>

#include "codec/bits.hpp"

// The 31 bits of a magnitude order the floats, so the wanted-th largest is found digit by digit:
// all values are counted by their highest 11 bits, those with the digit that was found by the next
// 10, then by the last 10.

namespace speedo {
namespace {

constexpr unsigned kHighBits = 11, kLowBits = 10;
static_assert(kHighBits + 2 * kLowBits == 31);
constexpr std::size_t kHighDigits = std::size_t{1} << kHighBits;
constexpr std::size_t kLowDigits = std::size_t{1} << kLowBits;

// A count that waits for the one before of the same digit is slow, and values beside each other
// often have the same: each of four neighbours has its own table.
constexpr std::size_t kTables = 4;
using HighCounts = std::array<std::uint32_t, kHighDigits>;

std::size_t magnitude_of(float value) { return static_cast<std::size_t>(magnitude_bits(value)); }

HighCounts count_high_digits(std::span<const float> values) {
  std::array<HighCounts, kTables> tables{};
  const auto count = [&](std::size_t table, float value) {
    ++tables[table][magnitude_of(value) >> 2 * kLowBits];
  };
  std::size_t i = 0;
  for (; i + kTables <= values.size(); i += kTables) {
    for (std::size_t table = 0; table < kTables; ++table) count(table, values[i + table]);
  }
  for (; i < values.size(); ++i) count(0, values[i]);
  for (std::size_t digit = 0; digit < kHighDigits; ++digit) {
    for (std::size_t table = 1; table < kTables; ++table) tables[0][digit] += tables[table][digit];
  }
  return tables[0];
}

// The digit of the wanted-th largest of those that were counted. Takes off `wanted` how many are
// larger by this digit.
std::size_t digit_of(std::span<const std::uint32_t> counts, std::size_t& wanted) {
  std::size_t digit = counts.size() - 1;
  for (; counts[digit] < wanted; --digit) wanted -= counts[digit];
  return digit;
}

}  // namespace

void mark_largest(std::span<const float> values, std::size_t wanted, IndexSet& entries) {
  SPEEDO_ASSERT(wanted > 0);
  if (values.empty()) return;
  wanted = std::min(wanted, values.size());
  std::size_t prefix = digit_of(count_high_digits(values), wanted);
  // At least the smallest magnitude that is not 0.
  const auto least = static_cast<std::uint32_t>(std::max<std::size_t>(prefix << 2 * kLowBits, 1));
  entries.mark_from(values, std::bit_cast<float>(least));
  for (const unsigned shift : {kLowBits, 0U}) {
    std::array<std::uint32_t, kLowDigits> counts{};
    // Zeros are not marked, and are there if all others are not enough.
    if (prefix == 0) counts[0] = static_cast<std::uint32_t>(values.size());
    entries.for_each([&](std::size_t index) {
      const std::size_t bits = magnitude_of(values[index]) >> shift;
      if (bits >> kLowBits == prefix) ++counts[bits % kLowDigits];
    });
    prefix = prefix << kLowBits | digit_of(counts, wanted);
  }
  // Now `wanted` is how many of those that are equal to the last one are left to take.
  entries.for_each([&](std::size_t index) {
    const std::size_t bits = magnitude_of(values[index]);
    if (bits > prefix) return;
    if (bits < prefix || wanted == 0) {
      entries.unmark(index);
    } else {
      --wanted;
    }
  });
}

}  // namespace speedo
