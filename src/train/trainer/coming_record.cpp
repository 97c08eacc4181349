#include "train/trainer/coming_record.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"
#include "train/merge/merger_looks.hpp"

namespace speedo {
namespace {

// So many chunks are asked about at once: twice as many as the time before have come. Every worker
// asks, and what it asks in vain costs the store as much as what it wants.
constexpr std::size_t kWindowMin = 2, kWindowMax = 32;
constexpr std::chrono::milliseconds kLookPauseMin{5};
// While chunks are on their way.
constexpr std::chrono::milliseconds kTransferLook{1};

}  // namespace

ComingRecord::ComingRecord(std::unique_ptr<AheadReader> reader, const AheadRecord& record,
                           std::span<float> target, Instant now)
    : record_(record),
      target_(target),
      expected_since_(now),
      states_(chunk_count(record.element_count), State::kForbidden),
      window_(kWindowMin),
      next_look_(now),
      reader_(std::move(reader)) {
  SPEEDO_ASSERT(target.size() == record.element_count);
}

void ComingRecord::allow(std::size_t chunk) {
  if (states_[chunk] == State::kForbidden) states_[chunk] = State::kFree;
}

void ComingRecord::allow_all() {
  for (std::size_t chunk = 0; chunk < states_.size(); ++chunk) allow(chunk);
}

bool ComingRecord::is_begun(std::size_t chunk) const {
  return states_[chunk] == State::kRequested || states_[chunk] == State::kHere;
}

// A chunk that was overwritten, or did not come, is read with the finished record.
bool ComingRecord::receive(std::size_t chunk) {
  SPEEDO_ASSERT(states_[chunk] == State::kRequested);
  const bool has_come = reader_->wait(chunk).has_value();
  states_[chunk] = has_come ? State::kHere : State::kLost;
  if (has_come) ++come_;
  return has_come;
}

bool ComingRecord::receive_what_is_done() {
  bool are_more_due = false;
  for (std::size_t chunk = 0; chunk < states_.size(); ++chunk) {
    if (states_[chunk] != State::kRequested) continue;
    if (reader_->is_done(chunk)) {
      receive(chunk);
    } else {
      are_more_due = true;
    }
  }
  return are_more_due;
}

bool ComingRecord::take(std::size_t chunk, const RecordReader& record) {
  SPEEDO_ASSERT(is_begun(chunk));
  if (!is_here(chunk) && !receive(chunk)) return false;
  return reader_->checksum(chunk) == record.checksum(chunk);
}

void ComingRecord::take_answers() {
  const std::vector<bool> seen = reader_->seen();
  std::size_t found = 0;
  for (std::size_t i = 0; i < looked_for_.size(); ++i) {
    if (!seen[i]) continue;
    const std::size_t chunk = looked_for_[i];
    reader_->request(chunk, chunk_of(target_, chunk));
    states_[chunk] = State::kRequested;
    ++found;
  }
  if (found == looked_for_.size()) next_look_ = Instant{0};
  window_ = std::clamp(2 * found, kWindowMin, kWindowMax);
  looked_for_.clear();
}

void ComingRecord::look(Instant now) {
  for (std::size_t chunk = states_.size(); chunk-- > 0 && looked_for_.size() < window_;) {
    if (states_[chunk] == State::kFree) looked_for_.push_back(chunk);
  }
  if (looked_for_.empty()) return;
  reader_->look(looked_for_);
  next_look_ = now + std::max<Instant>(ahead_pause(now - expected_since_), kLookPauseMin);
}

Instant ComingRecord::advance(Instant now) {
  if (!looked_for_.empty() && reader_->is_answered()) take_answers();
  const bool are_more_due = receive_what_is_done();
  if (looked_for_.empty() && now >= next_look_) look(now);
  if (are_more_due || !looked_for_.empty()) return kTransferLook;
  return std::max<Instant>(next_look_ - now, kTransferLook);
}

}  // namespace speedo
