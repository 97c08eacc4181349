#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/bucket.hpp>

#include "train/trainer_host_view.hpp"

namespace speedo {

// Buckets that become final in the memory of a device which is not the host's: copied out while it
// goes on, with what says whether their gradients were finite, and nobody waits before all of a
// pass has been queued. Thread safety: one thread at a time.
class BucketsAhead {
 public:
  // Of arenas of `count` elements, in `buckets` buckets at most. All outlive it. Error: kFull.
  static Result<std::unique_ptr<BucketsAhead>> create(Backend& backend, HostView& host,
                                                      std::int64_t count, std::int64_t buckets);

  // Buckets of this arena follow. False: its parts cannot be copied ahead.
  bool begin(Arena& arena);
  // A bucket's gradients are final behind what is queued on compute(): looks at them, queued.
  void look_at(const Bucket& bucket, const float* gradients);
  // The bucket's part of the arena is, too: it is on its way. After look_at() of the same bucket.
  void fetch(const Bucket& bucket);
  // Calls arrived(bucket, whether the sums of its gradients were finite: then all of them were) for
  // those that have come, in order; for all of them, and waits, with `waits`.
  using Arrived = std::function<void(const Bucket& bucket, bool is_finite)>;
  void pass_on(bool waits, const Arrived& arrived);
  // Those that have not been passed on are not wanted. Waits for them.
  void drop();

 private:
  BucketsAhead(Backend& backend, HostView& host) : backend_(backend), host_(host) {}
  std::span<float> sums_here() {
    return {sums_here_.as_floats(), sums_here_.bytes() / sizeof(float)};
  }

  Backend& backend_;
  HostView& host_;
  // Sums of absolute values of rows of gradients: such a sum is finite only if all of them are.
  Buffer sums_, sums_here_;  // on the device, and copied
  std::size_t summed_ = 0;
  struct OnItsWay {
    Bucket bucket;
    std::size_t first_sum, end_sum;
    StreamEvent here;
  };
  std::deque<OnItsWay> on_their_way_;
};

}  // namespace speedo
