#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/trainer.hpp>

#include "base/memory_limit.hpp"
#include "caffe.pb.h"
#include "measure/memory_forecast.hpp"
#include "train/job/master_options.hpp"

namespace speedo {

struct MemoryPolicy {
  bool force = false;  // what does not fit is warned of, not refused
  MemoryLimit limit = memory_limit();
};

// Predicts the memory of a training, logs it, and refuses what does not fit. Errors: kConfig with
// the figures; those of nets and data.
Result<MemoryForecast> admit_training(const caffe::SolverParameter& solver,
                                      const SolverOptions& options, const MemoryPolicy& policy);

// The same before a trainer of this process, one of `workers`, builds its nets
// (TrainerParts::admit).
using Admit = decltype(TrainerParts::admit);
Admit make_memory_guard(std::uint64_t workers, const MemoryPolicy& policy);

// A master's process: its nets, with those that it tests, and what merging takes. Returns what is
// predicted; 0 if the nets cannot be built, which run_master() tells why. Error: kConfig with the
// figures.
Result<std::int64_t> admit_master(const MasterOptions& options,
                                  const caffe::SolverParameter& solver, const TrainerParts& parts,
                                  const MemoryPolicy& policy);

// A cluster on this machine: its workers, each with these parts, its master and its store. `solver`
// has its nets inline, whose data paths may be relative to `base`. Nets that cannot be built are
// left to the master, which tells why. Returns what is predicted of one worker process, 0 if that
// is not known. Error: kConfig with the figures.
Result<std::int64_t> check_cluster_memory(const caffe::SolverParameter& solver,
                                          const std::filesystem::path& base,
                                          const std::vector<UpdateSpec>& stages,
                                          const TrainerParts& parts, std::uint64_t workers,
                                          const MemoryPolicy& policy);

}  // namespace speedo
