#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <speedo/train/training_id.hpp>

#include "caffe.pb.h"

namespace speedo::sim {

// What outlives every process: the files that snapshots were written to, and the note of which
// training began last.
struct SnapshotFiles {
  struct Snapshot {
    TrainingId training;
    std::uint64_t iteration = 0;
    std::string session;
    std::shared_ptr<caffe::NetParameter> model;
    std::shared_ptr<caffe::SolverState> state;
  };
  std::optional<Snapshot> newest;
  std::optional<TrainingId> training;
};

}  // namespace speedo::sim
