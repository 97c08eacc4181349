#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "train/record_put.hpp"

namespace speedo {

// Merges between checkpoints of a model of that size; `wanted` 0: every merge of a small one, every
// tenth of a large one.
std::uint64_t checkpoint_interval(std::uint64_t wanted, std::uint64_t element_count);

// The checkpoint record of a job whose weights' record lacks the histories: written from a copy,
// every so many merges, while the next merge is under way. A checkpoint that cannot be written is
// tried again after the next merge: the one before stays whole.
// Thread safety: one thread at a time.
class MergerCheckpoint {
 public:
  // `interval`: as checkpoint_interval() takes it. `behind`: see RecordPut.
  MergerCheckpoint(std::uint64_t interval, std::uint64_t element_count, Platform* behind);

  void count_merge() { ++merges_; }
  bool has_merges() const { return merges_ > 0; }
  // `by_count`: also if nobody asked for it, once so many merges were made.
  bool is_due(bool by_count) const { return asked_ || (by_count && merges_ >= interval_); }
  void make_due() { asked_ = true; }
  bool is_under_way() const { return put_.is_under_way(); }
  bool is_behind() const { return put_.is_behind(); }

  // Copies the weights, and behind them each history, which `read` puts where it is told; all are
  // of one size. Requires: none is under way.
  void fill(std::span<const float> weights, std::size_t history_count,
            const std::function<void(std::size_t index, std::span<float> target)>& read);
  std::span<const float> values() const { return memory_; }  // as filled
  // Begins to write them.
  void write(RecordStore& store, RecordInfo info);
  // Whether finish() of one that is under way would hardly wait.
  bool is_sent() const { return put_.is_sent(); }
  // Requires: one is under way. Errors: those of the store.
  Result<void> finish();

 private:
  const std::uint64_t interval_;
  std::uint64_t merges_ = 0;  // since the last checkpoint
  bool asked_ = false;
  std::vector<float> memory_;
  RecordPut put_;  // after the memory that it uses
};

}  // namespace speedo
