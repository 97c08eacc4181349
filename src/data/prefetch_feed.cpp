#include "data/prefetch_feed.hpp"

#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/thread_name.hpp>

namespace speedo {

// Beside the batches read ahead, one slot is with the consumer and one may be an abandoned read
// that has not ended yet.
PrefetchFeed::PrefetchFeed(std::unique_ptr<BatchReader> reader, std::shared_ptr<FeedMeter> meter)
    : reader_(std::move(reader)), meter_(std::move(meter)), slots_(kPrefetchBatches + 2) {
  if (meter_) meter_->host_bytes += steady_bytes();
  thread_ = std::thread([this] { run(); });
}

PrefetchFeed::~PrefetchFeed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (meter_) meter_->host_bytes -= steady_bytes();
}

// Of the batches read ahead and the one with the consumer: an abandoned one is rare.
std::int64_t PrefetchFeed::steady_bytes() const {
  std::int64_t elements = 0;
  for (const Shape& shape : reader_->shapes()) elements += shape.count();
  return (kPrefetchBatches + 1) * elements * static_cast<std::int64_t>(sizeof(float));
}

PrefetchFeed::Slot* PrefetchFeed::find(std::uint64_t batch) {
  for (Slot& slot : slots_) {
    const bool waits =
        slot.state == State::kAsked || slot.state == State::kReading || slot.state == State::kReady;
    if (waits && !slot.abandoned && slot.batch == batch) return &slot;
  }
  return nullptr;
}

PrefetchFeed::Slot* PrefetchFeed::first_asked() {
  Slot* first = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state != State::kAsked) continue;
    if (first == nullptr || slot.ticket < first->ticket) first = &slot;
  }
  return first;
}

// Null if there is no room.
PrefetchFeed::Slot* PrefetchFeed::ask(std::uint64_t batch) {
  for (Slot& slot : slots_) {
    if (slot.state != State::kFree) continue;
    slot.state = State::kAsked;
    slot.abandoned = false;
    slot.batch = batch;
    slot.ticket = next_ticket_++;
    changed_.notify_all();
    return &slot;
  }
  return nullptr;
}

void PrefetchFeed::give_up_before(std::uint64_t ticket) {
  for (Slot& slot : slots_) {
    if (slot.ticket >= ticket) continue;
    if (slot.state == State::kReading) {
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
  if (find(batch) == nullptr && ahead < kPrefetchBatches) ask(batch);
}

Result<std::vector<std::span<const float>>> PrefetchFeed::read(std::uint64_t batch) {
  std::unique_lock lock(mutex_);
  for (Slot& slot : slots_) {
    if (slot.state == State::kConsumed) slot.state = State::kFree;
  }
  Slot* slot = find(batch);
  give_up_before(slot != nullptr ? slot->ticket : next_ticket_);
  if (slot == nullptr) slot = ask(batch);
  SPEEDO_ASSERT(slot != nullptr);
  wait_for(*slot, lock);
  slot->state = State::kConsumed;
  if (slot->error) return *std::exchange(slot->error, std::nullopt);
  return std::vector<std::span<const float>>(slot->tops.begin(), slot->tops.end());
}

void PrefetchFeed::wait_for(const Slot& slot, std::unique_lock<std::mutex>& lock) {
  if (slot.state == State::kReady) return;
  const Instant start = steady_clock().now();
  changed_.wait(lock, [&slot] { return slot.state == State::kReady; });
  if (meter_) meter_->waited_ns += (steady_clock().now() - start).count();
}

// A slot gets its memory when it is first used: batches can be large, and not all slots may be
// needed.
void PrefetchFeed::fit(BatchReader::Tops& tops) const {
  if (!tops.empty()) return;
  for (const Shape& shape : reader_->shapes()) {
    tops.emplace_back(static_cast<std::size_t>(shape.count()));
  }
}

void PrefetchFeed::run() {
  name_thread("prefetch");
  std::unique_lock lock(mutex_);
  for (;;) {
    Slot* slot = nullptr;
    changed_.wait(lock, [&] { return stopping_ || (slot = first_asked()) != nullptr; });
    if (stopping_) return;
    slot->state = State::kReading;
    slot->error.reset();
    lock.unlock();
    fit(slot->tops);
    auto outcome = reader_->read(slot->batch, slot->tops);
    lock.lock();
    if (!outcome) slot->error = std::move(outcome).error();
    slot->state = slot->abandoned ? State::kFree : State::kReady;
    slot->abandoned = false;
    changed_.notify_all();
  }
}

}  // namespace speedo
