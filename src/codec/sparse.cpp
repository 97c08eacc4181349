#include "codec/sparse.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/bits.hpp"
#include "codec/index_set.hpp"
#include "codec/largest.hpp"

namespace speedo {
namespace {

// Of threshold: there is a T for each block.
constexpr std::uint32_t kByBlocks = 2;
constexpr std::size_t kBlock = 512;
constexpr std::size_t kBlocksMax = kCodecElementsMax / kBlock;

std::size_t block_count(std::size_t count) { return (count + kBlock - 1) / kBlock; }

void write_head(std::size_t entries, std::uint32_t form, std::byte* target) {
  store(target, static_cast<std::uint32_t>(entries));
  store(target + sizeof(std::uint32_t), form);
}

std::uint32_t number_of(IndexSet::Form form) { return static_cast<std::uint32_t>(form); }

constexpr double kThresholdPercent = 20.0;

std::size_t topk_entries(double percent, std::size_t count) {
  const auto share = std::llround(static_cast<double>(count) * percent / 100.0);
  return std::clamp<std::size_t>(static_cast<std::size_t>(share), 1,
                                 std::max<std::size_t>(count, 1));
}

// A number for each block, or one for all.
struct Thresholds {
  std::size_t count = 1, block = kCodecElementsMax;
  std::array<float, kBlocksMax> each;
  float of(std::size_t index) const { return each[index / block]; }
};

// Of what is marked in each block the mean magnitude: of all numbers the one that leaves least of
// it. 1 where nothing is.
Thresholds means_of(std::span<const float> values, const IndexSet& entries) {
  std::array<double, kBlocksMax> sums{};
  std::array<std::uint32_t, kBlocksMax> counts{};
  entries.for_each([&](std::size_t index) {
    sums[index / kBlock] += std::fabs(values[index]);
    counts[index / kBlock] += 1;
  });
  Thresholds means{.count = block_count(values.size()), .block = kBlock, .each = {}};
  for (std::size_t block = 0; block < means.count; ++block) {
    means.each[block] =
        counts[block] == 0 ? 1.0F : static_cast<float>(sums[block] / counts[block]);
  }
  return means;
}

std::size_t write_threshold(float threshold, std::span<const float> values, std::span<float> left,
                            std::byte* target) {
  IndexSet entries(values.size());
  Thresholds thresholds{.each = {threshold}};
  const bool by_blocks = threshold == 0.0F;
  if (by_blocks) {
    mark_largest(values, topk_entries(kThresholdPercent, values.size()), entries);
    thresholds = means_of(values, entries);
  } else {
    entries.mark_from(values, threshold);
  }
  const std::size_t count = entries.size();
  const IndexSet::Form form = entries.shorter_form();
  write_head(count, number_of(form) + (by_blocks ? kByBlocks : 0), target);
  const std::size_t bytes = thresholds.count * sizeof(float);
  std::memcpy(target + kSparseHead, thresholds.each.data(), bytes);
  std::byte* const signs = target + kSparseHead + bytes;
  unsigned eight = 0;
  std::size_t entry = 0;
  entries.for_each([&](std::size_t index) {
    const float value = values[index];
    eight |= (std::signbit(value) ? 1U : 0U) << (entry % 8);
    signs[entry / 8] = static_cast<std::byte>(eight);
    if (++entry % 8 == 0) eight = 0;
    if (!left.empty()) left[index] = value - std::copysign(thresholds.of(index), value);
  });
  std::byte* const rest = signs + bit_bytes(count);
  return static_cast<std::size_t>(rest - target) + entries.write(form, rest);
}

std::size_t write_topk(double percent, std::span<const float> values, std::span<float> left,
                       std::byte* target) {
  IndexSet entries(values.size());
  mark_largest(values, topk_entries(percent, values.size()), entries);
  const std::size_t count = entries.size();
  const IndexSet::Form form = entries.shorter_form();
  write_head(count, number_of(form), target);
  std::byte* rest = target + kSparseHead;
  entries.for_each([&](std::size_t index) {
    store(rest, values[index]);
    rest += sizeof(float);
    if (!left.empty()) left[index] = 0.0F;
  });
  return static_cast<std::size_t>(rest - target) + entries.write(form, rest);
}

// Those that a message has; false if one cannot be.
bool read_thresholds(std::span<const std::byte> own, const IndexSet& entries,
                     Thresholds& thresholds) {
  std::memcpy(thresholds.each.data(), own.data(), thresholds.count * sizeof(float));
  std::array<bool, kBlocksMax> is_used{};
  entries.for_each([&](std::size_t index) { is_used[index / thresholds.block] = true; });
  for (std::size_t i = 0; i < thresholds.count; ++i) {
    const float each = thresholds.each[i];
    if (!(each > 0.0F && each <= std::numeric_limits<float>::max())) return false;
    if (thresholds.block == kBlock && !is_used[i] && each != 1.0F) return false;
  }
  return true;
}

// The entries' own bytes, which stand before the index set.
bool read_threshold(std::span<const std::byte> own, const IndexSet& entries,
                    Thresholds& thresholds, std::span<float> target) {
  if (!read_thresholds(own, entries, thresholds)) return false;
  const std::span<const std::byte> signs = own.subspan(thresholds.count * sizeof(float));
  std::size_t entry = 0;
  entries.for_each([&](std::size_t index) {
    const auto eight = load<std::uint8_t>(&signs[entry / 8]);
    const std::uint32_t sign = (eight >> (entry % 8) & 1U) << 31U;
    target[index] =
        std::bit_cast<float>(std::bit_cast<std::uint32_t>(thresholds.of(index)) | sign);
    ++entry;
  });
  // No bit stands behind the last entry's.
  return entry % 8 == 0 || load<std::uint8_t>(&signs.back()) >> (entry % 8) == 0;
}

bool read_topk(std::span<const std::byte> own, const IndexSet& entries, std::span<float> target) {
  const std::byte* next = own.data();
  std::int32_t most = 0;
  entries.for_each([&](std::size_t index) {
    const auto value = load<float>(next);
    next += sizeof value;
    target[index] = value;
    most = std::max(most, magnitude_bits(value));
  });
  return most < kInfinityBits;
}

}  // namespace

std::size_t sparse_bytes_max(const CodecSpec& spec, std::size_t count) {
  const std::size_t head = kSparseHead + IndexSet::bytes_max(count);
  if (spec.kind == CodecKind::kTopK) {
    return head + sizeof(float) * topk_entries(spec.percent, count);
  }
  const std::size_t thresholds = spec.threshold == 0.0F ? block_count(count) : 1;
  return head + sizeof(float) * thresholds + bit_bytes(count);
}

std::size_t write_sparse(const CodecSpec& spec, std::span<const float> values,
                         std::span<float> left, std::byte* target) {
  return spec.kind == CodecKind::kThreshold
             ? write_threshold(spec.threshold, values, left, target)
             : write_topk(spec.percent, values, left, target);
}

std::optional<std::size_t> read_sparse(const CodecSpec& spec, std::span<const std::byte> bytes,
                                       std::span<float> target) {
  if (bytes.size() < kSparseHead) return std::nullopt;
  const auto count = load<std::uint32_t>(bytes.data());
  const auto number = load<std::uint32_t>(bytes.data() + sizeof count);
  const bool has_signs = spec.kind == CodecKind::kThreshold;
  const bool by_blocks = has_signs && number > kByBlocks;
  const auto form = static_cast<IndexSet::Form>(by_blocks ? number - kByBlocks : number);
  if (count > target.size()) return std::nullopt;
  if (form != IndexSet::Form::kGaps && form != IndexSet::Form::kBitmap) return std::nullopt;
  bytes = bytes.subspan(kSparseHead);
  Thresholds thresholds{.each = {}};
  if (by_blocks) {
    thresholds.count = block_count(target.size());
    thresholds.block = kBlock;
  }
  const std::size_t own_bytes =
      has_signs ? thresholds.count * sizeof(float) + bit_bytes(count) : sizeof(float) * count;
  if (bytes.size() < own_bytes) return std::nullopt;
  IndexSet entries(target.size());
  const auto index_bytes = entries.read(form, count, bytes.subspan(own_bytes));
  if (!index_bytes) return std::nullopt;
  std::fill(target.begin(), target.end(), 0.0F);
  const std::span<const std::byte> own = bytes.first(own_bytes);
  const bool is_sound = has_signs ? read_threshold(own, entries, thresholds, target)
                                  : read_topk(own, entries, target);
  if (!is_sound) return std::nullopt;
  return kSparseHead + own_bytes + *index_bytes;
}

}  // namespace speedo
