#include "data/prefetch_feed.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/thread_name.hpp>

#include "base/trace.hpp"

namespace speedo {

namespace {

// More would never all have a part.
std::int64_t useful_threads(const BatchReader& reader, int wanted) {
  SPEEDO_ASSERT(wanted >= 1);
  if (!reader.takes_threads()) return 1;
  return std::min<std::int64_t>(wanted, kPrefetchBatches * reader.part_count());
}

}  // namespace

// Beside the batches read ahead, one slot is with the consumer, who gives it back for the next
// batch whatever the others hold, and one may be an abandoned batch that is still being read.
PrefetchFeed::PrefetchFeed(std::unique_ptr<BatchReader> reader, std::shared_ptr<FeedMeter> meter,
                           int threads, Device* pinned_by)
    : reader_(std::move(reader)),
      meter_(std::move(meter)),
      part_count_(reader_->part_count()),
      pinned_by_(reader_->shapes_vary() ? nullptr : pinned_by),
      slots_(kPrefetchBatches + 2) {
  const std::int64_t count = useful_threads(*reader_, threads);
  SPEEDO_ASSERT(part_count_ == 1 || !reader_->shapes_vary());
  threads_.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
  if (meter_) meter_->host_bytes += steady_bytes();
}

PrefetchFeed::~PrefetchFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (meter_) meter_->host_bytes -= steady_bytes();
}

// Of the batches read ahead, the one with the consumer and the threads: abandoned ones are rare.
// Where shapes vary, those of record 0 stand for all.
std::int64_t PrefetchFeed::steady_bytes() const {
  std::int64_t elements = 0;
  for (const Shape& shape : reader_->shapes()) elements += shape.count();
  return (kPrefetchBatches + 1) * elements * static_cast<std::int64_t>(sizeof(float)) +
         static_cast<std::int64_t>(threads_.size()) * reader_->scratch_bytes();
}

PrefetchFeed::Slot* PrefetchFeed::find(std::uint64_t batch) {
  for (Slot& slot : slots_) {
    const bool waits = slot.state == State::kAsked || slot.state == State::kReady;
    if (waits && !slot.abandoned && slot.batch == batch) return &slot;
  }
  return nullptr;
}

// The first asked for of which a part is left to be given to a thread.
PrefetchFeed::Slot* PrefetchFeed::first_unread() {
  Slot* first = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state != State::kAsked || slot.abandoned || slot.next_part == part_count_) continue;
    if (first == nullptr || slot.ticket < first->ticket) first = &slot;
  }
  return first;
}

// Null if all slots are taken. Error: kFull. A slot gets its memory when it is first used: batches
// can be large, and not all slots may be needed.
Result<PrefetchFeed::Slot*> PrefetchFeed::ask(std::uint64_t batch) {
  for (Slot& slot : slots_) {
    if (slot.state != State::kFree) continue;
    SPEEDO_ASSERT(slot.readers == 0);
    if (slot.tops.is_empty()) SPEEDO_TRY(slot.tops.fit(reader_->shapes(), pinned_by_));
    slot.state = State::kAsked;
    slot.abandoned = false;
    slot.batch = batch;
    slot.ticket = next_ticket_++;
    slot.next_part = 0;
    slot.error.reset();
    if (part_count_ > 1) {
      asked_.notify_all();
    } else {
      asked_.notify_one();
    }
    return &slot;
  }
  return nullptr;
}

void PrefetchFeed::give_up_before(std::uint64_t ticket) {
  for (Slot& slot : slots_) {
    if (slot.ticket >= ticket) continue;
    if (slot.readers > 0) {
      slot.abandoned = true;
    } else {
      slot.state = State::kFree;
    }
  }
}

void PrefetchFeed::will_need(std::uint64_t batch) {
  const std::lock_guard lock(mutex_);
  int ahead = 0;
  for (const Slot& slot : slots_) {
    const bool busy = slot.state != State::kFree && slot.state != State::kConsumed;
    if (busy && !slot.abandoned) ++ahead;
  }
  if (find(batch) != nullptr || ahead >= kPrefetchBatches) return;
  // A lack of memory shows when the batch is read.
  static_cast<void>(ask(batch).has_value());
}

// The slot of a batch that has been read, for which the consumer gives its last one back.
Result<PrefetchFeed::Slot*> PrefetchFeed::await(std::uint64_t batch,
                                                std::unique_lock<std::mutex>& lock) {
  for (Slot& slot : slots_) {
    if (slot.state == State::kConsumed) slot.state = State::kFree;
  }
  Slot* slot = find(batch);
  give_up_before(slot != nullptr ? slot->ticket : next_ticket_);
  if (slot == nullptr) {
    SPEEDO_ASSIGN(slot, ask(batch));
  }
  SPEEDO_ASSERT(slot != nullptr);
  wait_for(*slot, lock);
  return slot;
}

Result<std::vector<Shape>> PrefetchFeed::shapes_of(std::uint64_t batch) {
  std::unique_lock lock(mutex_);
  SPEEDO_ASSIGN(Slot* const slot, await(batch, lock));
  if (!slot->error) return slot->tops.shapes();
  slot->state = State::kConsumed;
  return *std::exchange(slot->error, std::nullopt);
}

Result<std::vector<std::span<const float>>> PrefetchFeed::read(std::uint64_t batch) {
  std::unique_lock lock(mutex_);
  SPEEDO_ASSIGN(Slot* const slot, await(batch, lock));
  slot->state = State::kConsumed;
  if (slot->error) return *std::exchange(slot->error, std::nullopt);
  return slot->tops.values();
}

void PrefetchFeed::wait_for(const Slot& slot, std::unique_lock<std::mutex>& lock) {
  if (slot.state == State::kReady) return;
  const Instant start = steady_clock().now();
  const TraceSpan span("wait for data");
  read_.wait(lock, [&slot] { return slot.state == State::kReady; });
  if (meter_) meter_->waited_ns += (steady_clock().now() - start).count();
}

bool PrefetchFeed::is_ready(std::uint64_t batch) {
  const std::lock_guard lock(mutex_);
  const Slot* slot = find(batch);
  return slot != nullptr && slot->state == State::kReady;
}

void PrefetchFeed::run() {
  name_thread("prefetch");
  std::unique_lock lock(mutex_);
  for (;;) {
    Slot* slot = nullptr;
    asked_.wait(lock, [&] { return stopping_ || (slot = first_unread()) != nullptr; });
    if (stopping_) return;
    const std::uint64_t batch = slot->batch;
    const std::int64_t part = slot->next_part++;
    ++slot->readers;
    lock.unlock();
    auto outcome = [&] {
      const TraceSpan span("read batch");
      return reader_->read(batch, part, slot->tops);
    }();
    lock.lock();
    finish(*slot, part, std::move(outcome));
  }
}

// Parts before one that failed were given to threads before it, so the batch's error is the one
// that a single thread would meet; parts behind it are not read.
void PrefetchFeed::finish(Slot& slot, std::int64_t part, Result<void> outcome) {
  --slot.readers;
  if (!outcome) {
    if (!slot.error || part < slot.failed_part) {
      slot.failed_part = part;
      slot.error = std::move(outcome).error();
    }
    slot.next_part = part_count_;
  }
  if (slot.readers > 0 || (slot.next_part < part_count_ && !slot.abandoned)) return;
  slot.state = slot.abandoned ? State::kFree : State::kReady;
  slot.abandoned = false;
  if (slot.state == State::kReady) read_.notify_one();
}

}  // namespace speedo
