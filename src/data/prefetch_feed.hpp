#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <speedo/backend/device.hpp>
#include <speedo/core/batch_feed.hpp>

#include "data/batch_reader.hpp"

namespace speedo {

// Counts for all feeds of a factory.
struct FeedMeter {
  std::atomic<std::int64_t> waited_ns{0}, host_bytes{0}, skipped_records{0};
};

// What becomes of a record that cannot be read.
enum class OnBadRecord { kAbort, kSkip };
constexpr OnBadRecord bad_record_policy(bool skip) {
  return skip ? OnBadRecord::kSkip : OnBadRecord::kAbort;
}

// Lets threads of its own run a reader ahead of the consumer.
//
// Batches are begun in the order asked for, and so are a batch's parts: a thread that is free takes
// the first part that nobody has. Each part has its place in its batch, so which thread fills it
// makes no difference to the values. When a batch is consumed, those asked for before it were
// predictions that did not come true, and are given up.
class PrefetchFeed : public BatchFeed {
 public:
  // `meter` null: nothing is counted. Of `threads` there are no more than the reader takes and the
  // batches read ahead have parts. `pinned_by` null: batches lie in ordinary memory, as do those
  // whose shapes vary, since a device gives memory to one thread at a time. Requires: threads >= 1;
  // the device outlives the feed.
  explicit PrefetchFeed(std::unique_ptr<BatchReader> reader,
                        std::shared_ptr<FeedMeter> meter = nullptr, int threads = 1,
                        Device* pinned_by = nullptr);
  ~PrefetchFeed() override;

  const std::vector<Shape>& shapes() const override { return reader_->shapes(); }
  std::uint64_t record_count() const override { return reader_->record_count(); }
  bool shapes_vary() const override { return reader_->shapes_vary(); }
  Result<std::vector<Shape>> shapes_of(std::uint64_t batch) override;
  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override;
  void will_need(std::uint64_t batch) override;
  bool is_ready(std::uint64_t batch) override;

 private:
  enum class State { kFree, kAsked, kReady, kConsumed };
  // One batch's memory, used again and again.
  struct Slot {
    State state = State::kFree;
    bool abandoned = false;  // free it as soon as nobody reads any more
    std::uint64_t batch = 0;
    std::uint64_t ticket = 0;    // order of asking
    std::int64_t next_part = 0;  // those before it were given to threads
    int readers = 0;             // threads that have a part
    BatchTops tops;
    std::int64_t failed_part = 0;
    std::optional<Error> error;  // of the first part that failed
  };

  void run();
  void finish(Slot& slot, std::int64_t part, Result<void> outcome);
  void wait_for(const Slot& slot, std::unique_lock<std::mutex>& lock);
  Result<Slot*> await(std::uint64_t batch, std::unique_lock<std::mutex>& lock);
  std::int64_t steady_bytes() const;
  Slot* find(std::uint64_t batch);
  Slot* first_unread();
  Result<Slot*> ask(std::uint64_t batch);
  void give_up_before(std::uint64_t ticket);

  std::unique_ptr<BatchReader> reader_;
  const std::shared_ptr<FeedMeter> meter_;
  const std::int64_t part_count_;
  Device* const pinned_by_;
  std::mutex mutex_;
  std::condition_variable asked_;  // for the threads; or they shall stop
  std::condition_variable read_;   // for the consumer: a slot became ready
  std::vector<Slot> slots_;        // guarded by mutex_, but for tops in which threads have parts
  std::uint64_t next_ticket_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace speedo
