#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <speedo/base/clock.hpp>
#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "train/record_put.hpp"

namespace speedo {

// When the weights of a master whose workers read them in shared memory go to the store: for a
// master after this one now and then, so that it costs little; for workers that read them there
// with each merge. Thread safety: one thread at a time.
class MergerPublication {
 public:
  // `behind`: see RecordPut.
  MergerPublication(const Clock& clock, Platform* behind) : clock_(clock), put_(behind) {}

  // A merge is made, of contributions some of which came through the store, or none.
  void count_merge(bool through_store);
  // Whether each version has to be in the store before anybody hears of it.
  bool is_with_each_merge() const;

  // Somebody waits for the newest version: it is due whenever it was written last.
  void make_due() { asked_ = true; }
  // This version is in the store.
  void published(std::uint64_t version);
  std::uint64_t version() const { return version_; }  // that is in the store
  // The store has it no longer.
  void lost();
  // Whether the version that the master has should begin to be written; and when to ask again.
  bool is_due(std::uint64_t newest) const;
  Instant next_look() const;

  bool is_under_way() const { return put_.is_under_way(); }
  // `values` stay as they are until finish().
  void begin(RecordStore& store, const RecordInfo& info, std::span<const float> values);
  // Whether finish() would hardly wait.
  bool is_sent() const { return put_.is_sent(); }
  // Errors: those of the store. It is tried again when it is due.
  Result<void> finish();
  // A checkpoint of so many bytes goes with it, or still does with the one before, and its time
  // counts as well; then it has ended, well or not. Not an error: none was begun.
  void begin_beside(std::size_t bytes);
  void end_beside(bool done);

 private:
  // The time that the store's writing of some bytes took, as far as it counts.
  struct Duration {
    Instant begun_at{0}, took{0};
    std::size_t bytes = 0;
    void begin(Instant now, std::size_t new_bytes);
    void end(Instant now);
  };
  Instant interval() const;

  const Clock& clock_;
  std::optional<Instant> through_store_at_;  // the last merge of such contributions
  Instant merged_at_{0}, between_merges_{0};
  Instant begun_at_{0};                      // the last publication, whole or under way
  Duration duration_, beside_;
  bool is_beside_ = false;
  std::uint64_t version_ = 0, writing_ = 0;
  bool asked_ = false;
  RecordPut put_;
};

}  // namespace speedo
