#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/key_value.hpp"

namespace speedo::test {

// What a test lets a store do just then.
enum class Mood {
  kWilling,
  kReadsOnly,  // what writes fails, as on a replica
  kSilent,     // nothing is answered, until the store is to be waited for no longer
};
using SharedMood = std::shared_ptr<std::atomic<Mood>>;

// A map that serves as its mood is. Thread safety: all methods from any thread.
class UnwillingMap : public KeyValue {
 public:
  UnwillingMap(std::shared_ptr<KeyValue> map, SharedMood mood)
      : map_(std::move(map)), mood_(std::move(mood)) {}
  ~UnwillingMap() override { stop_waiting(); }

  void submit(KvPtr operation) override {
    const bool writes = !operation->is_read();
    const Mood mood = *mood_;
    if (mood == Mood::kSilent) {
      hold(std::move(operation));
    } else if (mood == Mood::kReadsOnly && writes) {
      refusals_ += 1;
      operation->complete(Error{ErrorCode::kUnavailable, "the test refuses writes"});
    } else {
      map_->submit(std::move(operation));
    }
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }
  void stop_waiting() override {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const KvPtr& each : held_) give_up(*each);
    held_.clear();
  }
  int refusals() const { return refusals_; }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_.empty(); });
  }

 private:
  void hold(KvPtr operation) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return give_up(*operation);
    held_.push_back(std::move(operation));
    changed_.notify_all();
  }
  static void give_up(KvOperation& operation) {
    operation.complete(Error{ErrorCode::kTimeout, "the test answers nothing"});
  }

  const std::shared_ptr<KeyValue> map_;
  const SharedMood mood_;
  std::atomic<int> refusals_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;     // guarded by mutex_
  std::vector<KvPtr> held_;  // guarded by mutex_
};

}  // namespace speedo::test
