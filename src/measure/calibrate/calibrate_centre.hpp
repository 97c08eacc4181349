#pragma once

#include <cstdint>
#include <memory>

#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "local/private_redis.hpp"
#include "train/job/job_nets.hpp"
#include "train/job/open_store.hpp"

namespace speedo {

// Where the weights of trainers are that only measure, and what becomes of their contributions.
class CalibrateCentre {
 public:
  virtual ~CalibrateCentre() = default;
  virtual std::shared_ptr<RecordStore> store() const = 0;
  virtual std::uint64_t term() const = 0;
  // A worker's run is contributed: waits until it is merged, and returns the version to go on from.
  // Thread safety: from any thread.
  virtual Result<Version> contributed(WorkerId worker, RunId run) = 0;
};

// An exchange that takes no time: the weights stay what they are.
std::unique_ptr<CalibrateCentre> make_still_centre(const JobNets& nets);
// As in an asynchronous cluster: in Redis, merged by a merger, beginning with the nets' first
// weights, which it takes. Errors: those of the store.
Result<std::unique_ptr<CalibrateCentre>> make_merging_centre(const OpenStore& open_store,
                                                             const PrivateRedis& redis,
                                                             JobNets& nets);

}  // namespace speedo
