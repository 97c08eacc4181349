#pragma once

#include <functional>

#include <speedo/train/trainer.hpp>

#include "cli/compute_options.hpp"
#include "train/job/open_store.hpp"

namespace speedo {

// The implementations that are measured; the caller picks them.
struct CalibrateParts {
  std::function<TrainerParts(const ComputeOptions& compute)> trainer;
  OpenStore open_store;
};

}  // namespace speedo
