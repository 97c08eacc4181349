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

#include "train/trainer/trainer_host_view.hpp"

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
  // The part of the arena of the bucket that was looked at last is, too: it is on its way.
  void fetch();
  // Calls arrived(bucket, whether its gradients were finite) for those that have come, in order;
  // for all of them, and waits, with `waits`.
  using Arrived = std::function<void(const Bucket& bucket, bool is_finite)>;
  void pass_on(bool waits, const Arrived& arrived);
  // Those that have not been passed on are not wanted. Waits for them.
  void drop();

 private:
  BucketsAhead(Backend& backend, HostView& host) : backend_(backend), host_(host) {}
  std::span<float> means_here() {
    return {means_here_.as_floats(), means_here_.bytes() / sizeof(float)};
  }

  Backend& backend_;
  HostView& host_;
  // Of the absolute values of rows of gradients: finite just if all of them are.
  Buffer means_, means_here_;  // on the device, and copied
  std::size_t rows_ = 0;       // so far
  struct OnItsWay {
    Bucket bucket;
    std::size_t first_row, end_row;
    StreamEvent here;
  };
  std::deque<OnItsWay> on_their_way_;
};

}  // namespace speedo
