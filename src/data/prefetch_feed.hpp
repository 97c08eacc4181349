#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <speedo/core/batch_feed.hpp>

#include "data/batch_reader.hpp"

namespace speedo {

// Counts for all feeds of a factory.
struct FeedMeter {
  std::atomic<std::int64_t> waited_ns{0}, host_bytes{0};
};

// Lets a thread of its own run a reader ahead of the consumer.
//
// Batches are read in the order asked for. When a batch is consumed, those asked for before it were
// predictions that did not come true, and are given up.
class PrefetchFeed : public BatchFeed {
 public:
  // `meter` null: nothing is counted.
  explicit PrefetchFeed(std::unique_ptr<BatchReader> reader,
                        std::shared_ptr<FeedMeter> meter = nullptr);
  ~PrefetchFeed() override;

  const std::vector<Shape>& shapes() const override { return reader_->shapes(); }
  std::uint64_t record_count() const override { return reader_->record_count(); }
  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override;
  void will_need(std::uint64_t batch) override;

 private:
  enum class State { kFree, kAsked, kReading, kReady, kConsumed };
  // One batch's memory, used again and again.
  struct Slot {
    State state = State::kFree;
    bool abandoned = false;  // free it as soon as it has been read
    std::uint64_t batch = 0;
    std::uint64_t ticket = 0;  // order of asking
    BatchReader::Tops tops;
    std::optional<Error> error;
  };

  void run();
  void wait_for(const Slot& slot, std::unique_lock<std::mutex>& lock);
  std::int64_t steady_bytes() const;
  void fit(BatchReader::Tops& tops) const;
  Slot* find(std::uint64_t batch);
  Slot* first_asked();
  Slot* ask(std::uint64_t batch);
  void give_up_before(std::uint64_t ticket);

  std::unique_ptr<BatchReader> reader_;
  const std::shared_ptr<FeedMeter> meter_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;  // guarded by mutex_, but for the tops of the one being read
  std::uint64_t next_ticket_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace speedo
