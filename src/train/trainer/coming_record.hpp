#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// A record that is expected, read while its writer still makes it: the last chunks first, as merges
// give them. Nothing of it counts before the finished record names the same checksums.
// Thread safety: one thread at a time.
class ComingRecord {
 public:
  // `target`: of record.element_count floats; belongs to this from allow() on, chunk by chunk,
  // until it is destroyed. `now`: it is expected since then.
  ComingRecord(std::unique_ptr<AheadReader> reader, const AheadRecord& record,
               std::span<float> target, Instant now);

  const AheadRecord& record() const { return record_; }
  std::span<float> target() const { return target_; }
  // A chunk of the target is free. Not an error: it was before.
  void allow(std::size_t chunk);
  void allow_all();

  // Takes what has come and asks for more; never waits for the store. How soon it is worth while to
  // be called again.
  Instant advance(Instant now);

  // How many chunks have come so far.
  std::size_t come() const { return come_; }
  // Whether a chunk is in the target, as far as it is known.
  bool is_here(std::size_t chunk) const { return states_[chunk] == State::kHere; }
  // Whether a chunk is in the target or on its way there. Then:
  bool is_begun(std::size_t chunk) const;
  // what `record` names is in the target; waits for it. Not an error: it is not.
  bool take(std::size_t chunk, const RecordReader& record);
  // take() would not wait. Requires: is_begun().
  bool is_done(std::size_t chunk) const { return is_here(chunk) || reader_->is_done(chunk); }

 private:
  enum class State : char { kForbidden, kFree, kRequested, kHere, kLost };

  bool receive(std::size_t chunk);
  bool receive_what_is_done();
  void take_answers();
  void look(Instant now);

  const AheadRecord record_;
  const std::span<float> target_;
  const Instant expected_since_;
  std::vector<State> states_;
  std::vector<std::size_t> looked_for_;  // chunks that the store was asked about
  std::size_t window_;                   // how many it is asked about at once
  std::size_t come_ = 0;
  Instant next_look_;
  std::unique_ptr<AheadReader> reader_;  // last: it writes into the target
};

}  // namespace speedo
