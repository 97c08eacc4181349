#pragma once

#include <optional>

#include <speedo/base/result.hpp>
#include <speedo/store/blob_store.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/checkpoint.hpp>
#include <speedo/train/master_session.hpp>

#include "train/job/job_nets.hpp"
#include "train/job/master_options.hpp"

namespace speedo {

// What a master begins from: a fresh start, files, or what an earlier master left in the store.
struct JobStart {
  Checkpoint checkpoint;    // without a session's state: a new training begins
  bool from_store = false;  // else nothing that the store has of the job is wanted any more
};

// Gives a job without a random_seed the one of the job in the store that it resumes, so that it
// goes on with the same shuffles; else one drawn from the system.
Result<JobSpec> with_seed_of_job(JobSpec spec, MasterOptions::Resume resume, BlobStore& store);

// Which training the store has weights of.
std::optional<TrainingId> training_in(RecordStore& store);

// Chooses as options.resume says; changes nothing. `config` is that of the session to come. Errors:
// kNotFound if there is nothing to resume; kMismatch, kCorrupt for what cannot be gone on from;
// those of the store.
Result<JobStart> find_start(const MasterOptions& options, const MasterConfig& config,
                            JobNets& nets, ParameterStore& store);

}  // namespace speedo
