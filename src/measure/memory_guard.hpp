#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
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
  // Of the memory that nets take where it is a device's own. Not known: that is not judged.
  MemoryLimit device_limit = {};
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
// predicted on the host; 0 if the nets cannot be built, which run_master() tells why. Error:
// kConfig with the figures.
Result<std::int64_t> admit_master(const MasterOptions& options,
                                  const caffe::SolverParameter& solver, const TrainerParts& parts,
                                  const MemoryPolicy& policy);

// Who takes the memory of a device that is its own.
struct DeviceShare {
  MemoryLimit limit;
  std::uint64_t workers = 0;
  bool has_master = false;
};

// What decides, beside its stages, how much a cluster's store holds.
struct LocalStore {
  std::uint64_t servers = 1;
  bool shares_memory = true;  // workers and master exchange in memory, where that can be
  bool part_copies = false, worker_states = false;  // as in StoredJob
};

// A cluster on this machine: its workers, its master and its store.
struct ClusterPlan {
  const caffe::SolverParameter& solver;  // with its nets inline
  std::filesystem::path base;            // that paths of data may be relative to
  std::vector<UpdateSpec> stages;
  TrainerParts worker_parts, master_parts;
  std::uint64_t workers = 1;
  std::vector<DeviceShare> devices = {};
  LocalStore store = {};
};

// What is wanted of one memory; `parts`: what the bytes are made of.
struct MemoryDemand {
  std::int64_t bytes = 0;
  std::string parts;
  MemoryLimit limit;
};

struct ClusterDemand {
  std::vector<MemoryDemand> devices;
  MemoryDemand host;
  std::int64_t worker_bytes = 0;  // of one worker process on the host
};

// Of all processes of the cluster together. Errors: those of nets and data.
Result<ClusterDemand> predict_cluster(const ClusterPlan& plan,
                                      const MemoryLimit& limit = memory_limit());

// Nets that cannot be built are left to the master, which tells why. Returns what is predicted of
// one worker process on the host, 0 if that is not known. Error: kConfig with the figures.
Result<std::int64_t> check_cluster_memory(const ClusterPlan& plan, const MemoryPolicy& policy);

}  // namespace speedo
