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

double norm_of(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace

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

// Every chunk has room for the most that any of its codec may take.
std::span<std::byte> TrainerCodec::bytes_of(std::size_t chunk) {
  const std::size_t room = encoded_bytes_max(spec_.codec, chunk_length());
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
  const std::span<std::byte> room = bytes_of(chunk);
  SPEEDO_ASSIGN(const std::size_t size, speedo::encode(spec_.codec, values, left, room));
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
