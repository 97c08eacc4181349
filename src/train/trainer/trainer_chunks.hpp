#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "train/trainer/coming_record.hpp"

namespace speedo {

// A record on its way into memory, chunk by chunk, in any order.
// Thread safety: one thread at a time.
class IncomingChunks {
 public:
  // A chunk has come. May be empty.
  using Arrived = std::function<void(std::size_t offset, std::size_t count)>;

  // `target` belongs to this until it is destroyed. `coming`: what was read ahead of the record,
  // into the same target; null: nothing.
  IncomingChunks(std::unique_ptr<RecordReader> reader, std::span<float> target, Arrived arrived,
                 std::unique_ptr<ComingRecord> coming = nullptr);

  const RecordInfo& info() const { return reader_->info(); }
  std::size_t count() const { return target_.size(); }
  std::size_t chunks() const { return states_.size(); }
  bool is_here(std::size_t chunk) const { return states_[chunk] == State::kHere; }
  // Chunks that were in the target, as they are, before the record was finished.
  bool was_here(std::size_t chunk) const { return were_here_[chunk]; }
  // Not an error: it was requested, or is here.
  void request(std::size_t chunk);
  void request_all();
  // Waits for a chunk, which is requested if it was not. Not an error: it is here. Errors: those of
  // ChunkSource::wait().
  Result<void> take(std::size_t chunk);
  // Takes what has come without waiting.
  Result<void> take_what_is_done();

 private:
  // kComing: asked for ahead of the record.
  enum class State : char { kAbsent, kComing, kRequested, kHere };

  void set_here(std::size_t chunk);
  bool is_done(std::size_t chunk) const;

  std::span<float> target_;
  Arrived arrived_;
  std::vector<State> states_;
  std::vector<bool> were_here_;
  // Last: they write into the target.
  std::unique_ptr<RecordReader> reader_;
  std::unique_ptr<ComingRecord> coming_;
};

// Which chunks of a record are whole, of one that becomes final in ranges.
class ChunkTally {
 public:
  explicit ChunkTally(std::size_t count);
  // Elements [offset, offset + count) are final: returns the chunks that are whole by that.
  // Requires: each element once.
  std::vector<std::size_t> add(std::size_t offset, std::size_t count);
  bool is_complete() const;
  std::size_t count() const { return count_; }

 private:
  std::size_t count_;
  std::vector<std::size_t> lacking_;  // elements of each chunk
};

}  // namespace speedo
