#include "train/buckets_ahead.hpp"

#include <algorithm>
#include <cmath>
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
  SPEEDO_ASSIGN(made->sums_, backend.device().allocate(bytes));
  SPEEDO_ASSIGN(made->sums_here_, backend.device().allocate_pinned(bytes));
  return made;
}

bool BucketsAhead::begin(Arena& arena) {
  SPEEDO_ASSERT(on_their_way_.empty());
  summed_ = 0;
  return host_.begin_ahead(arena);
}

void BucketsAhead::look_at(const Bucket& bucket, const float* gradients) {
  const std::int64_t whole = bucket.count / kRow, rest = bucket.count % kRow;
  const std::size_t first = summed_;
  summed_ += static_cast<std::size_t>(rows_of(bucket.count));
  SPEEDO_ASSERT(summed_ <= sums_here().size());
  float* const to = sums_.as_floats() + first;
  backend_.reduce_rows(ReduceOp::kAbsSum, {whole, kRow}, 1.0F, gradients, to);
  if (rest > 0) {
    backend_.reduce_rows(ReduceOp::kAbsSum, {1, rest}, 1.0F, gradients + whole * kRow, to + whole);
  }
  on_their_way_.push_back({bucket, first, summed_, {}});
}

void BucketsAhead::fetch(const Bucket& bucket) {
  SPEEDO_ASSERT(!on_their_way_.empty());
  OnItsWay& last = on_their_way_.back();
  SPEEDO_ASSERT(last.bucket.offset == bucket.offset && last.bucket.count == bucket.count);
  host_.fetch(static_cast<std::size_t>(bucket.offset), static_cast<std::size_t>(bucket.count));
  // Behind the same work as the part.
  Device& device = backend_.device();
  device.queue_download(device.transfer(),
                        sums_here().subspan(last.first_sum, last.end_sum - last.first_sum),
                        sums_.as_floats() + last.first_sum);
  last.here = device.record(device.transfer());
}

void BucketsAhead::pass_on(bool waits, const Arrived& arrived) {
  Device& device = backend_.device();
  while (!on_their_way_.empty()) {
    const OnItsWay first = on_their_way_.front();
    if (!waits && !device.is_done(first.here)) return;
    device.wait(first.here);
    on_their_way_.pop_front();
    const auto sums = sums_here().subspan(first.first_sum, first.end_sum - first.first_sum);
    arrived(first.bucket, std::all_of(sums.begin(), sums.end(),
                                      [](float sum) { return std::isfinite(sum); }));
  }
}

void BucketsAhead::drop() {
  pass_on(true, [](const Bucket&, bool) {});
  host_.end_ahead();
}

}  // namespace speedo
