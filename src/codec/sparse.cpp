#include "codec/sparse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codec/bits.hpp"
#include "codec/index_set.hpp"
#include "codec/largest.hpp"

namespace speedo {
namespace {

void write_head(std::size_t entries, IndexSet::Form form, std::byte* target) {
  store(target, static_cast<std::uint32_t>(entries));
  store(target + sizeof(std::uint32_t), static_cast<std::uint32_t>(form));
}

constexpr double kThresholdPercent = 10.0;

std::size_t topk_entries(double percent, std::size_t count) {
  const auto share = std::llround(static_cast<double>(count) * percent / 100.0);
  return std::clamp<std::size_t>(static_cast<std::size_t>(share), 1,
                                 std::max<std::size_t>(count, 1));
}

// Marks the largest values, and returns their mean magnitude: of all numbers the one that leaves
// least of them.
float mark_threshold(std::span<const float> values, IndexSet& entries) {
  mark_largest(values, topk_entries(kThresholdPercent, values.size()), entries);
  double sum = 0.0;
  entries.for_each([&](std::size_t index) { sum += std::fabs(values[index]); });
  const std::size_t count = entries.size();
  return count == 0 ? 1.0F : static_cast<float>(sum / static_cast<double>(count));
}

std::size_t write_threshold(float threshold, std::span<const float> values, std::span<float> left,
                            std::byte* target) {
  IndexSet entries(values.size());
  if (threshold > 0.0F) {
    entries.mark_from(values, threshold);
  } else {
    threshold = mark_threshold(values, entries);
  }
  const std::size_t count = entries.size();
  const IndexSet::Form form = entries.shorter_form();
  write_head(count, form, target);
  store(target + kSparseHead, threshold);
  std::byte* const signs = target + kSparseHead + sizeof threshold;
  unsigned eight = 0;
  std::size_t entry = 0;
  entries.for_each([&](std::size_t index) {
    const float value = values[index];
    eight |= (std::signbit(value) ? 1U : 0U) << (entry % 8);
    signs[entry / 8] = static_cast<std::byte>(eight);
    if (++entry % 8 == 0) eight = 0;
    if (!left.empty()) left[index] = value - std::copysign(threshold, value);
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
  write_head(count, form, target);
  std::byte* rest = target + kSparseHead;
  entries.for_each([&](std::size_t index) {
    store(rest, values[index]);
    rest += sizeof(float);
    if (!left.empty()) left[index] = 0.0F;
  });
  return static_cast<std::size_t>(rest - target) + entries.write(form, rest);
}

// The entries' own bytes, which stand before the index set.
bool read_threshold(std::span<const std::byte> own, const IndexSet& entries,
                    std::span<float> target) {
  const auto threshold = load<float>(own.data());
  if (!(threshold > 0.0F && threshold <= std::numeric_limits<float>::max())) return false;
  const std::span<const std::byte> signs = own.subspan(sizeof threshold);
  std::size_t entry = 0;
  entries.for_each([&](std::size_t index) {
    const auto eight = load<std::uint8_t>(&signs[entry / 8]);
    const std::uint32_t sign = (eight >> (entry % 8) & 1U) << 31U;
    target[index] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(threshold) | sign);
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
  if (spec.kind == CodecKind::kThreshold) return head + sizeof(float) + bit_bytes(count);
  return head + sizeof(float) * topk_entries(spec.percent, count);
}

std::size_t write_sparse(const CodecSpec& spec, std::span<const float> values,
                         std::span<float> left, std::byte* target) {
  return spec.kind == CodecKind::kThreshold
             ? write_threshold(spec.threshold, values, left, target)
             : write_topk(spec.percent, values, left, target);
}

bool read_sparse(const CodecSpec& spec, std::span<const std::byte> bytes,
                 std::span<float> target) {
  if (bytes.size() < kSparseHead) return false;
  const auto count = load<std::uint32_t>(bytes.data());
  const auto form = load<IndexSet::Form>(bytes.data() + sizeof count);
  if (count > target.size()) return false;
  if (form != IndexSet::Form::kGaps && form != IndexSet::Form::kBitmap) return false;
  bytes = bytes.subspan(kSparseHead);
  const bool signs = spec.kind == CodecKind::kThreshold;
  const std::size_t own_bytes = signs ? sizeof(float) + bit_bytes(count) : sizeof(float) * count;
  if (bytes.size() < own_bytes) return false;
  IndexSet entries(target.size());
  if (!entries.read(form, count, bytes.subspan(own_bytes))) return false;
  std::fill(target.begin(), target.end(), 0.0F);
  const std::span<const std::byte> own = bytes.first(own_bytes);
  return signs ? read_threshold(own, entries, target) : read_topk(own, entries, target);
}

}  // namespace speedo
