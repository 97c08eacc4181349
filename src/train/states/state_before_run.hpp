#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/train/messages.hpp>

namespace speedo {

// What a worker had alone when its last run began. A snapshot whose weights are without that run
// gets this: whoever goes on from there trains the run's data anew.
//
// Thread safety: one thread at a time.
class StateBeforeRun {
 public:
  struct Counts {
    std::int64_t updates_held = 0;
    std::uint64_t steps_done = 0;
  };

  // From here on these arrays of the backend's are kept, beside them; what was kept is forgotten.
  // They and the backend outlive the last keep(). Error: kFull.
  Result<void> follow(Backend& backend, std::vector<const Arena*> arrays);
  // The run begins.
  void keep(std::uint64_t run, const Counts& counts);

  // Whether that run is the last that began.
  bool is_of(std::uint64_t run) const { return run != kNoRun && run == run_; }
  const Counts& counts() const { return counts_; }
  // The arrays one after the other. Requires: of their length.
  void download(std::span<float> values) const;

 private:
  Backend* backend_ = nullptr;
  std::vector<std::pair<const Arena*, Arena>> arrays_;  // and what was kept of each
  std::uint64_t run_ = kNoRun;
  Counts counts_;
};

}  // namespace speedo
