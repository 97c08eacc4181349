#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/ids.hpp>
#include <speedo/train/phase_times.hpp>
#include <speedo/train/read_faults.hpp>

// A job as it is at one moment, for those who watch it. Plain data.
namespace speedo {

// Figures for the live line, the log and --json.
struct MasterProgress {
  std::uint64_t iteration = 0;          // start + merged
  // Those that follow go on from what masters before this one have counted.
  std::uint64_t merges = 0;             // updates of the weights
  std::uint64_t contributions = 0;      // that went into them
  std::uint64_t rejected = 0;           // not finite, missing or corrupt
  std::uint64_t discarded = 0;          // by the schedule
  std::uint64_t samples = 0;
  // Of this master: messages that were late, repeated, or of a peer not admitted.
  std::uint64_t ignored = 0;
  // Of the runs that workers reported to this master, on their own clocks.
  PhaseTimes phases;
  Traffic traffic;
  ReadFaults read_faults;
  std::uint64_t workers_alive = 0;
  std::uint64_t workers_joined = 0;     // in all
  std::uint64_t worker_ids = 0;         // given so far, by earlier masters too: those below
  double staleness_sum = 0.0;           // version at merge - base version, over contributions
  std::optional<float> last_loss;       // of the last merge of this master, if there was one
  std::optional<float> accuracy, test_loss;
  std::uint64_t quarantined = 0;            // workers kept out because their host flaps
  std::uint32_t stage = 0;              // index of the one that trains
  std::uint64_t stage_start = 0;        // iteration from which it counts; it may have begun later
  std::uint64_t term = 0;              // of this master
  bool training = false;
  bool paused = false;                  // fewer workers than workers_min
};

enum class WorkerState : std::uint32_t {
  kPreparing,  // admitted, builds its net
  kWaiting,    // for the master's next order
  kTraining,
  kGone,
};
const char* to_string(WorkerState state);  // "preparing", ...

struct WorkerStatus {
  WorkerId worker;
  std::string name, device;        // as its Hello said
  WorkerState state = WorkerState::kPreparing;
  std::string gone_why;            // of one that is gone, else empty
  std::uint64_t iteration = 0;     // that its newest run was given for
  std::uint64_t runs = 0;          // reported
  std::uint64_t samples = 0;
  std::uint64_t dropped = 0;       // contributions: discarded by the schedule, or rejected
  std::uint64_t staleness = 0;     // of its contribution that was merged last
  std::uint64_t silent_ms = 0;     // since it was heard of; since it is gone
  double images_per_second = 0.0;  // lately
  double bytes_per_second = 0.0;   // to and from the store, lately
  PhaseTimes phases;
  Traffic traffic;
  ReadFaults read_faults;
  bool operator==(const WorkerStatus&) const = default;
};

// How often a figure was at most each of some bounds; not cumulative.
template <std::size_t kBounds>
class Histogram {
 public:
  explicit constexpr Histogram(const std::array<double, kBounds>& bounds) : bounds_(bounds) {}
  void add(double value) {
    std::size_t bucket = 0;
    while (bucket < kBounds && value > bounds_[bucket]) ++bucket;
    counts_[bucket] += 1;
    sum_ += value;
  }
  std::span<const double> bounds() const { return bounds_; }
  // One more than bounds: the last is of what is above them all.
  std::span<const std::uint64_t> counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<double, kBounds> bounds_;
  std::array<std::uint64_t, kBounds + 1> counts_{};
  double sum_ = 0.0;
};

// What masters before this one have counted, of numbers in MasterProgress.
struct EarlierCounts {
  std::uint64_t merges = 0, contributions = 0, rejected = 0, discarded = 0, samples = 0;
  std::uint64_t workers_joined = 0;
};

struct JobStatus {
  MasterProgress progress;
  EarlierCounts earlier;           // known to the master alone
  std::string job;                 // its key space in the store
  std::string training;            // its short name
  std::string schedule;            // of the stage: "sync"
  std::uint64_t stages = 1;
  std::uint64_t max_iteration = 0;
  std::uint64_t workers_min = 1;
  std::uint64_t uptime_ms = 0;     // of this master
  bool store_away = false;         // it does not answer
  bool over = false;               // nothing more is trained
  double merges_per_second = 0.0;  // lately
  double images_per_second = 0.0;  // merged, lately
  // Merges between the reading of weights and the merge, of each contribution.
  Histogram<10> staleness{{0, 1, 2, 3, 4, 6, 8, 16, 32, 64}};
  // Seconds of each run, as its worker measured it.
  Histogram<12> run_seconds{{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60}};
  std::vector<WorkerStatus> workers;  // by number; those that are gone come last
};

}  // namespace speedo
