#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <speedo/train/training_id.hpp>

#include "checkpoint/resume.hpp"
#include "sim/check/record_checker.hpp"
#include "sim/simulated_disk.hpp"
#include "sim/check/violations.hpp"

namespace speedo::sim {

// What a new master must go on from: of its own training, the newest that is whole, in the store
// and in files.
class StartChecker {
 public:
  struct Setting {
    const SimulatedDisk& disk;
    KeyValue& map;
    const RecordChecker& records;
    std::string job, prefix;     // of the snapshots
    std::uint64_t elements = 0;  // of the weights
    bool wants_states = false;   // of workers: files that have them are gone on from
  };
  StartChecker(Setting setting, Violations& violations)
      : setting_(std::move(setting)), violations_(violations) {}

  // Where a training is.
  struct Place {
    TrainingId training;
    std::uint64_t term = 0, iteration = 0;
    std::size_t states = 0;  // of workers that go with it, if they are wanted
    bool is_before(const Place& other) const {
      return std::pair(term, iteration) < std::pair(other.term, other.iteration);
    }
  };
  // A master has looked at the files just now. `stored`: which training it has found in the store.
  // Gives where those are that it has chosen.
  std::optional<Place> chose(const std::optional<TrainingId>& stored,
                             const std::optional<SavedCheckpoint>& chosen);
  // A master has written a checkpoint of this state to files.
  void wrote(const std::string& state);
  // Something else has changed files.
  void files_disturbed() { written_.reset(); }
  // It begins with this state of a session, or anew; the store is as it was when it chose.
  void begins(const std::string& state, const std::optional<Place>& files);

 private:
  // The training, or any.
  std::optional<Place> newest_file(const std::optional<TrainingId>& training) const;
  bool has_part(const record::CheckpointFile& record,
                const record::CheckpointFile::Part& part) const;
  std::optional<TrainingId> noted() const;
  struct Stored {
    Place place;
    bool has_histories = false;
  };
  std::optional<Stored> stored(const std::string& name) const;
  std::optional<Place> newest_stored() const;

  const Setting setting_;
  Violations& violations_;
  std::optional<Place> written_;  // last, and undisturbed
};

}  // namespace speedo::sim
