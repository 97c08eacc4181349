#include "train/store_errand.hpp"

#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

void StoreErrand::begin(std::function<Result<void>()> errand) {
  SPEEDO_ASSERT(!is_under_way());
  answer_ = std::make_unique<Answer<Result<void>>>(platform_);
  if (!thread_) thread_ = std::make_unique<JobThread>(platform_, "store errand");
  thread_->post([errand = std::move(errand), answer = answer_.get()] { answer->set(errand()); });
}

bool StoreErrand::is_done() const { return answer_ && answer_->wait_for(Instant{0}); }

Result<void> StoreErrand::finish() {
  SPEEDO_ASSERT(is_under_way());
  auto done = answer_->wait();
  answer_.reset();
  return done;
}

}  // namespace speedo
