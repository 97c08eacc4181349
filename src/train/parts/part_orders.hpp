#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/part_store.hpp>
#include <speedo/train/merge_job.hpp>

namespace speedo {

// What the merger of a part is told. Each order but Expect and Close has a number of its own, which
// its answer repeats.
namespace part_order {

// Begins anew: reads version `from` of the weights, and puts its part of them as `version`, as this
// stage's first. Answer: Written, or Failed; then it waits for a decision, as after Merge.
// Of replicated updates: makes ready for this stage's steps, writes nothing and waits for nothing.
struct Open {
  std::uint64_t id = 0;
  Version from, version;
  std::uint32_t stage = 0;
  std::uint32_t first_slot = 0;  // kRecordSlots slots from it on are its own
  bool operator==(const Open&) const = default;
};

// One merge into version `base`. Answer: Written, Rejected or Failed.
struct Merge {
  std::uint64_t id = 0;
  Version base;
  MergeJob job;  // without a state
  bool operator==(const Merge&) const = default;
};

// A merge into version `base` that is likely to come, see Merger::expect(). No answer.
struct Expect {
  Version base;
  MergeJob job;
  bool operator==(const Expect&) const = default;
};

// What order `id` has made counts, or is taken back. No answer.
struct Decide {
  std::uint64_t id = 0;
  bool commit = false;
  bool operator==(const Decide&) const = default;
};

// Answer: Copied, or Failed.
struct Copy {
  std::uint64_t id = 0;
  bool operator==(const Copy&) const = default;
};

// Training is over, or another has the part. No answer.
struct Close {
  bool operator==(const Close&) const = default;
};

}  // namespace part_order

using PartOrder = std::variant<part_order::Open, part_order::Merge, part_order::Expect,
                               part_order::Decide, part_order::Copy, part_order::Close>;

namespace part_answer {

struct Written {
  std::uint64_t id = 0;
  WrittenPart part;
  bool begun_ahead = false;
  bool operator==(const Written&) const = default;
};

// Contributions at fault; nothing was merged. Of the workers, those whose contribution was there,
// whole, and not finite in this part.
struct Rejected {
  std::uint64_t id = 0;
  std::vector<WorkerId> workers;
  std::vector<WorkerId> not_finite = {};
  bool operator==(const Rejected&) const = default;
};

struct Failed {
  std::uint64_t id = 0;
  Error error;
};

struct Copied {
  std::uint64_t id = 0;
  std::vector<float> weights;
  std::vector<std::vector<float>> histories;
};

// The merger is gone, whatever it was told.
struct Lost {
  std::string reason;
};

}  // namespace part_answer

using PartAnswer = std::variant<part_answer::Written, part_answer::Rejected, part_answer::Failed,
                                part_answer::Copied, part_answer::Lost>;
// Takes an answer, on any thread, and returns at once.
using PartSink = std::function<void(PartAnswer)>;

}  // namespace speedo
