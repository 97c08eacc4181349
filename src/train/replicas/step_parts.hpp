#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/merger.hpp>

#include "train/replicas/step_header.hpp"
#include "train/replicas/step_layout.hpp"

namespace speedo {

// Where steps are made if not by the merger of the weights itself: in parts, one a server.
// Thread safety: one thread at a time.
class StepParts {
 public:
  virtual ~StepParts() = default;
  virtual std::size_t parts() const = 0;
  // Gives the room for a step's values, as long as its record, and where they lie in it.
  struct StepRoom {
    std::span<float> values;
    const StepLayout& layout;
  };
  using Room = std::function<StepRoom(const StepHeader& header)>;
  // Merges into the step that `info` describes but for its length and its state, and reads what
  // has become of it: it counts only if all of it was there. The result has the version before if
  // every contribution is at fault. Errors: those of the store, kSuperseded.
  virtual Result<MergeResult> merge(const MergeJob& job, RecordInfo info, const Room& room) = 0;
  // A merge that is likely to come, see Merger::expect(): what is made of it ahead is read into the
  // room, which is given until the merge or forget(), as far as take_ahead() is called.
  virtual void expect(const MergeJob& job, RecordInfo info, const Room& room) = 0;
  virtual bool expects() const = 0;
  // False: nothing has come since the last time. Never waits.
  virtual bool take_ahead() = 0;
  virtual void forget() = 0;
};

}  // namespace speedo
