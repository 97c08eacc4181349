#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <speedo/base/result.hpp>

#include "data/prefetch_feed.hpp"

namespace speedo {

// What a feed does with records that cannot be read. Aborting, it stops with the first one's error;
// else it takes the next record in its place, counts, and tells of the first few.
// Thread safety: pass_over() may be called from any thread.
class BadRecords {
 public:
  // `meter` may be null. `what` they are called, of more than one.
  BadRecords(OnBadRecord policy, std::shared_ptr<FeedMeter> meter, std::string what = "records")
      : policy_(policy), meter_(std::move(meter)), what_(std::move(what)) {}
  BadRecords(const BadRecords&) = delete;
  BadRecords& operator=(const BadRecords&) = delete;
  ~BadRecords();

  // Whether the record, which could not be read for this reason, is passed over. `missed`: how many
  // were, one after the other, before it; too many are an error whatever the policy.
  bool pass_over(std::uint64_t index, const Error& error, std::uint64_t missed);

 private:
  const OnBadRecord policy_;
  const std::shared_ptr<FeedMeter> meter_;
  const std::string what_;
  std::mutex mutex_;
  std::set<std::uint64_t> bad_;  // guarded by mutex_
};

}  // namespace speedo
