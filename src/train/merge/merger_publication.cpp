#include "train/merge/merger_publication.hpp"

#include <algorithm>
#include <chrono>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

// A new master loses what was merged since the last publication: at most so much, where writing
// takes no time.
constexpr std::chrono::milliseconds kIntervalMin{1000};
// One that takes long comes so much more seldom, as it takes computing time from training.
constexpr int kShare = 20;
// What takes no longer than this does not put off the next.
constexpr Instant kTakesNoTime = Instant(kIntervalMin) / kShare;
// A publication's time counts as so many times the last one's at most, or as what a slow server
// takes for its bytes: it may have waited for one that was away, which takes no computing time.
constexpr int kGrowth = 2;
constexpr double kSlowBytesPerSecond = 200e6;
// A worker that has read from the store once will do so again.
constexpr std::chrono::seconds kReaderStays{60};
// So many usual times without a merge: somebody may be waiting for the weights in the store.
constexpr int kLull = 3;
constexpr std::chrono::milliseconds kLullMin{20}, kLullMax{5000};
constexpr std::chrono::milliseconds kLookWhileSending{5};

}  // namespace

void MergerPublication::count_merge(bool through_store) {
  const Instant now = clock_.now();
  if (through_store) through_store_at_ = now;
  between_merges_ = merged_at_ == Instant{0} ? Instant{0} : now - merged_at_;
  merged_at_ = now;
}

bool MergerPublication::is_with_each_merge() const {
  return through_store_at_ && clock_.now() - *through_store_at_ < kReaderStays;
}

void MergerPublication::published(std::uint64_t version) {
  version_ = version;
  begun_at_ = clock_.now();
}

void MergerPublication::lost() {
  version_ = 0;
  asked_ = true;
}

void MergerPublication::Duration::begin(Instant now, std::size_t new_bytes) {
  begun_at = now;
  bytes = new_bytes;
}

void MergerPublication::Duration::end(Instant now) {
  const auto slow = std::chrono::duration_cast<Instant>(
      std::chrono::duration<double>(static_cast<double>(bytes) / kSlowBytesPerSecond));
  took = std::min(now - begun_at, std::max({kGrowth * took, kTakesNoTime, slow}));
}

Instant MergerPublication::interval() const {
  return std::max<Instant>(kIntervalMin, kShare * (duration_.took + beside_.took));
}

bool MergerPublication::is_due(std::uint64_t newest) const {
  if (is_under_way() || newest <= version_) return false;
  if (asked_) return true;
  const Instant now = clock_.now();
  const bool is_lull =
      now - merged_at_ >= std::clamp<Instant>(kLull * between_merges_, kLullMin, kLullMax);
  return is_lull || now - begun_at_ >= interval();
}

Instant MergerPublication::next_look() const {
  if (is_under_way()) return kLookWhileSending;
  return std::clamp<Instant>(kLull * between_merges_, kLullMin, kIntervalMin);
}

void MergerPublication::begin(RecordStore& store, const RecordInfo& info,
                              std::span<const float> values) {
  SPEEDO_ASSERT(!is_under_way());
  asked_ = false;
  begun_at_ = clock_.now();
  duration_.begin(begun_at_, values.size_bytes());
  writing_ = info.version;
  put_.begin(store, weights_key(), info, values);
}

Result<void> MergerPublication::finish() {
  auto done = put_.finish();
  if (!done) return done;
  duration_.end(clock_.now());
  version_ = writing_;
  return done;
}

void MergerPublication::begin_beside(std::size_t bytes) {
  if (is_beside_) return;
  beside_.begin(clock_.now(), bytes);
  is_beside_ = true;
}

void MergerPublication::end_beside(bool done) {
  if (is_beside_ && done) beside_.end(clock_.now());
  is_beside_ = false;
}

}  // namespace speedo
