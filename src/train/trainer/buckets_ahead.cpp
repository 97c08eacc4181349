#include "train/trainer/buckets_ahead.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

constexpr std::int64_t kRow = 4096;

std::int64_t rows_of(std::int64_t count) { return (count + kRow - 1) / kRow; }

}  // namespace

Result<std::unique_ptr<BucketsAhead>> BucketsAhead::create(Backend& backend, HostView& host,
                                                           std::int64_t count,
                                                           std::int64_t buckets) {
  const auto bytes = static_cast<std::size_t>(rows_of(count) + buckets) * sizeof(float);
  auto made = std::unique_ptr<BucketsAhead>(new BucketsAhead(backend, host));
  SPEEDO_ASSIGN(made->means_, backend.device().allocate(bytes));
  SPEEDO_ASSIGN(made->means_here_, backend.device().allocate_pinned(bytes));
  return made;
}

bool BucketsAhead::begin(Arena& arena) {
  SPEEDO_ASSERT(on_their_way_.empty());
  if (!host_.begin_ahead(arena)) return false;
  // What a device that has failed does not copy is not taken for finite.
  std::ranges::fill(means_here(), std::numeric_limits<float>::quiet_NaN());
  rows_ = 0;
  return true;
}

void BucketsAhead::look_at(const Bucket& bucket, const float* gradients) {
  const std::int64_t whole = bucket.count / kRow, rest = bucket.count % kRow;
  const std::size_t first = rows_;
  rows_ += static_cast<std::size_t>(rows_of(bucket.count));
  SPEEDO_ASSERT(rows_ <= means_here().size());
  float* const to = means_.as_floats() + first;
  constexpr float kMean = 1.0F / kRow;
  backend_.reduce_rows(ReduceOp::kAbsSum, {whole, kRow}, kMean, gradients, to);
  if (rest > 0) {
    backend_.reduce_rows(ReduceOp::kAbsSum, {1, rest}, kMean, gradients + whole * kRow,
                         to + whole);
  }
  on_their_way_.push_back({bucket, first, rows_, {}});
}

void BucketsAhead::fetch() {
  SPEEDO_ASSERT(!on_their_way_.empty());
  OnItsWay& last = on_their_way_.back();
  host_.fetch(static_cast<std::size_t>(last.bucket.offset),
              static_cast<std::size_t>(last.bucket.count));
  // Behind the same work as the part.
  Device& device = backend_.device();
  device.queue_download(device.transfer(),
                        means_here().subspan(last.first_row, last.end_row - last.first_row),
                        means_.as_floats() + last.first_row);
  last.here = device.record(device.transfer());
}

void BucketsAhead::pass_on(bool waits, const Arrived& arrived) {
  Device& device = backend_.device();
  while (!on_their_way_.empty()) {
    const OnItsWay first = on_their_way_.front();
    if (!waits && !device.is_done(first.here)) return;
    device.wait(first.here);
    on_their_way_.pop_front();
    const auto means = means_here().subspan(first.first_row, first.end_row - first.first_row);
    arrived(first.bucket, std::all_of(means.begin(), means.end(),
                                      [](float mean) { return std::isfinite(mean); }));
  }
}

void BucketsAhead::drop() {
  pass_on(true, [](const Bucket&, bool) {});
  host_.end_ahead();
}

}  // namespace speedo
