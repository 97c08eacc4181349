#include "train/trainer/trainer_chunks.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

IncomingChunks::IncomingChunks(std::unique_ptr<RecordReader> reader, std::span<float> target,
                               Arrived arrived, std::unique_ptr<ComingRecord> coming)
    : target_(target),
      arrived_(std::move(arrived)),
      states_(chunk_count(target.size()), State::kAbsent),
      were_here_(states_.size()),
      reader_(std::move(reader)),
      coming_(std::move(coming)) {
  SPEEDO_ASSERT(reader_->info().element_count == target.size());
  if (!coming_) return;
  SPEEDO_ASSERT(coming_->target().data() == target.data());
  for (std::size_t chunk = 0; chunk < states_.size(); ++chunk) {
    if (!coming_->is_begun(chunk)) continue;
    if (!coming_->is_here(chunk)) {
      states_[chunk] = State::kComing;
    } else if (coming_->take(chunk, *reader_)) {
      were_here_[chunk] = true;
      set_here(chunk);
    }
  }
}

void IncomingChunks::set_here(std::size_t chunk) {
  states_[chunk] = State::kHere;
  if (arrived_) arrived_(chunk * chunk_length(), chunk_elements(target_.size(), chunk));
}

void IncomingChunks::request(std::size_t chunk) {
  SPEEDO_ASSERT(chunk < states_.size());
  if (states_[chunk] != State::kAbsent) return;
  reader_->request(chunk, chunk_of(target_, chunk));
  states_[chunk] = State::kRequested;
}

void IncomingChunks::request_all() {
  for (std::size_t chunk = 0; chunk < states_.size(); ++chunk) request(chunk);
}

Result<void> IncomingChunks::take(std::size_t chunk) {
  if (is_here(chunk)) return {};
  if (states_[chunk] == State::kComing) {
    if (coming_->take(chunk, *reader_)) {
      set_here(chunk);
      return {};
    }
    states_[chunk] = State::kAbsent;
  }
  request(chunk);
  SPEEDO_TRY(reader_->wait(chunk));
  set_here(chunk);
  return {};
}

bool IncomingChunks::is_done(std::size_t chunk) const {
  if (states_[chunk] == State::kComing) return coming_->is_done(chunk);
  return states_[chunk] == State::kRequested && reader_->is_done(chunk);
}

Result<void> IncomingChunks::take_what_is_done() {
  for (std::size_t chunk = 0; chunk < states_.size(); ++chunk) {
    if (is_done(chunk)) SPEEDO_TRY(take(chunk));
  }
  return {};
}

ChunkTally::ChunkTally(std::size_t count) : count_(count), lacking_(chunk_count(count)) {
  for (std::size_t chunk = 0; chunk < lacking_.size(); ++chunk) {
    lacking_[chunk] = chunk_elements(count, chunk);
  }
}

std::vector<std::size_t> ChunkTally::add(std::size_t offset, std::size_t count) {
  SPEEDO_ASSERT(offset + count <= count_);
  std::vector<std::size_t> whole;
  for (const std::size_t end = offset + count; offset < end;) {
    const std::size_t chunk = offset / chunk_length();
    const std::size_t chunk_end = chunk * chunk_length() + chunk_elements(count_, chunk);
    const std::size_t part = std::min(end, chunk_end) - offset;
    SPEEDO_ASSERT(part <= lacking_[chunk]);
    lacking_[chunk] -= part;
    offset += part;
    if (lacking_[chunk] == 0) whole.push_back(chunk);
  }
  return whole;
}

bool ChunkTally::is_complete() const {
  return std::ranges::all_of(lacking_, [](std::size_t lacking) { return lacking == 0; });
}

}  // namespace speedo
