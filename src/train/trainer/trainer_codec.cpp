#include "train/trainer/trainer_codec.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/record_store.hpp>

#include "base/log.hpp"
#include "base/simd.hpp"
#include "store/chunk_range.hpp"

namespace speedo {
namespace {

SPEEDO_MULTIVERSION void add_to(const float* source, float* target, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) target[i] += source[i];
}

// Returns the Euclidean norm of what goes beyond `most`.
double cut(std::span<float> values, float most) {
  double sum = 0.0;
  for (float& value : values) {
    const float kept = std::clamp(value, -most, most);
    sum += static_cast<double>(value - kept) * (value - kept);
    value = kept;
  }
  return std::sqrt(sum);
}

// Ranges that adjoin become one.
void append(std::size_t begin, std::size_t end, std::vector<ExactRange>& ranges) {
  if (begin == end) return;
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = end;
  } else {
    ranges.push_back({begin, end});
  }
}

double norm_of(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace

void TrainerCodec::set_layout(const ParameterLayout& layout) {
  statistics_.clear();
  unsteered_.clear();
  std::size_t next = 0;
  for (const ParameterSlot& slot : layout.slots()) {
    const auto begin = static_cast<std::size_t>(slot.offset);
    const std::size_t end = begin + static_cast<std::size_t>(slot.count());
    append(next, begin, unsteered_);
    if (slot.is_statistic) append(begin, end, statistics_);
    if (slot.is_statistic || slot.lr_mult == 0.0F) append(begin, end, unsteered_);
    next = end;
  }
  append(next, static_cast<std::size_t>(layout.element_count()), unsteered_);
}

double TrainerCodec::enter_stage(const UpdateSpec& update, std::size_t count, bool may_hold) {
  // Without error feedback nothing of it would be sent, but whole updates complete it.
  const bool sends = carries_residual(update) || update.codec.kind == CodecKind::kNone;
  const bool fits = may_hold && count == count_ && update.kind == spec_.kind &&
                    !is_elastic(update.kind) && sends;
  double forgotten = 0.0;
  if (!fits) {
    forgotten = residual_norm();
    residual_ = next_ = {};
  } else if (spec_.codec.kind == CodecKind::kThreshold && spec_.codec.threshold > 0.0F &&
             update.codec != spec_.codec) {
    forgotten = cut(residual_, kThresholdsToKeep * spec_.codec.threshold);
  }
  if (forgotten > 0.0) {
    SPEEDO_WARN("a stage begins that cannot send all that codecs have left out before: updates of "
                "norm {:.3g} are dropped",
                forgotten);
  }
  spec_ = update;
  count_ = count;
  committed_.reset();
  bytes_.clear();
  return forgotten;
}

void TrainerCodec::begin_run(std::uint64_t merged_run) {
  settle(merged_run);
  committed_.reset();
}

void TrainerCodec::settle(std::uint64_t merged_run) {
  if (committed_ != merged_run) return;
  std::swap(residual_, next_);
  committed_.reset();
}

void TrainerCodec::copy_residual(std::span<float> target) const {
  SPEEDO_ASSERT(residual_.empty() || residual_.size() == target.size());
  std::ranges::copy(residual_, target.begin());
}

void TrainerCodec::take_residual(std::span<const float> residual) {
  residual_.assign(residual.begin(), residual.end());
  next_.assign(residual.size(), 0.0F);
  committed_.reset();
}

// onebit has no zero: what it makes of parameters that do not learn would change them, and what it
// makes of padding would count in norms, which is why both go with the statistics.
std::vector<ExactRange> TrainerCodec::exact_in(std::size_t chunk) const {
  const std::size_t begin = chunk * chunk_length();
  const std::size_t end = begin + chunk_elements(count_, chunk);
  std::vector<ExactRange> ranges;
  for (const ExactRange& range : kind() == CodecKind::kOneBit ? unsteered_ : statistics_) {
    if (range.end <= begin || range.begin >= end) continue;
    ranges.push_back({std::max(range.begin, begin) - begin, std::min(range.end, end) - begin});
  }
  return ranges;
}

// Every chunk has room for the most that any of its codec may take.
std::span<std::byte> TrainerCodec::bytes_of(std::size_t chunk) {
  if (bytes_.empty()) {
    exact_room_ = 0;
    for (std::size_t each = 0; each < chunk_count(count_); ++each) {
      exact_room_ = std::max(exact_room_, exact_bytes(exact_in(each)));
    }
  }
  const std::size_t room = encoded_bytes_max(spec_.codec, chunk_length()) + exact_room_;
  if (bytes_.empty()) bytes_.resize(chunk_count(count_) * room);
  return std::span(bytes_).subspan(chunk * room, room);
}

Result<std::span<const std::byte>> TrainerCodec::encode(std::size_t chunk,
                                                        std::span<const float> values) {
  SPEEDO_ASSERT(values.size() == chunk_elements(count_, chunk));
  std::span<float> left;
  if (carries_residual(spec_)) {
    residual_.resize(count_);
    next_.resize(count_);
    left = chunk_of(std::span(next_), chunk);
    std::ranges::copy(chunk_of(std::span(residual_), chunk), left.begin());
  }
  const std::vector<ExactRange> exact = exact_in(chunk);
  if (left.empty() && !exact.empty()) {
    unsent_.assign(values.size(), 0.0F);
    left = unsent_;
  }
  const std::span<std::byte> room = bytes_of(chunk);
  SPEEDO_ASSIGN(const std::size_t size, speedo::encode(spec_.codec, values, left, room, exact));
  return std::span<const std::byte>(room.first(size));
}

void TrainerCodec::complete(std::size_t chunk, std::span<float> values) {
  if (residual_.empty()) return;
  add_to(chunk_of(std::span(residual_), chunk).data(), values.data(), values.size());
  std::ranges::fill(chunk_of(std::span(next_), chunk), 0.0F);
}

double TrainerCodec::residual_norm() const { return norm_of(residual_); }

double TrainerCodec::norm_left_at_end() const { return norm_of(committed_ ? next_ : residual_); }

}  // namespace speedo
