#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/base/platform.hpp>

#include "train/parts/part_orders.hpp"

namespace speedo {

// Why a merger is dismissed.
inline constexpr const char* kPartTaken = "another merger has this part now";

// The way to the merger of one part, in this process or another. Thread safety: all methods from
// any thread.
class PartLink {
 public:
  virtual ~PartLink() = default;
  // Returns at once. What is told to one that is gone is lost; it has said so to its sink.
  virtual void tell(const PartOrder& order) = 0;
  // Where its answers go from now on. Before the first order, once.
  virtual void answer_to(PartSink sink) = 0;
  // The part is another's now, and why.
  virtual void dismiss(const std::string& reason) = 0;
};

// Where the mergers of parts report: those that run elsewhere offer themselves here, and the
// answers of all are collected. Thread safety: all methods from any thread.
class PartDesk {
 public:
  explicit PartDesk(Platform& platform)
      : clock_(platform.clock()), monitor_(platform.make_monitor()) {}

  struct Offer {
    std::size_t part = 0;
    std::string name;  // for people
    std::shared_ptr<PartLink> link;
  };
  void offer(Offer offer) {
    const std::lock_guard lock(*monitor_);
    offers_.push_back(std::move(offer));
  }
  std::vector<Offer> take_offers() {
    const std::lock_guard lock(*monitor_);
    return std::exchange(offers_, {});
  }

  // An answer of the link that was given this number.
  struct Answered {
    std::uint64_t link = 0;
    PartAnswer answer;
  };
  void put(Answered answer) {
    const std::lock_guard lock(*monitor_);
    answers_.push_back(std::move(answer));
    monitor_->notify_all();
  }
  // The next answer; none: it is not waited for any longer.
  std::optional<Answered> wait() {
    const std::lock_guard lock(*monitor_);
    while (answers_.empty() && !stopped_) monitor_->wait();
    monitor_->wait_for(clock_, kStoreEndPatience, [this] { return !answers_.empty(); });
    return pop();
  }
  // Whether wait() would not wait, if need be after this time.
  bool is_answered_in(Instant patience) {
    const std::lock_guard lock(*monitor_);
    return monitor_->wait_for(clock_, patience, [this] { return !answers_.empty() || stopped_; });
  }
  // The next that is there already.
  std::optional<Answered> look() {
    const std::lock_guard lock(*monitor_);
    return pop();
  }
  // From here on nobody is waited for who does not answer for kStoreEndPatience.
  void stop() {
    const std::lock_guard lock(*monitor_);
    stopped_ = true;
    monitor_->notify_all();
  }

 private:
  std::optional<Answered> pop() {
    if (answers_.empty()) return std::nullopt;
    Answered first = std::move(answers_.front());
    answers_.pop_front();
    return first;
  }

  const Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  // Guarded by monitor_.
  std::vector<Offer> offers_;
  std::deque<Answered> answers_;
  bool stopped_ = false;
};

}  // namespace speedo
