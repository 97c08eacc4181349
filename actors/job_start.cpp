#include "actors/job_start.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "core/prototxt.hpp"
#include "train/job_solver.hpp"

namespace speedo {
namespace {

// The iteration that a session with this state goes on from.
Result<std::uint64_t> iteration_of(const MasterConfig& config, const std::string& state) {
  if (state.empty()) return config.start_iteration;
  MasterSession session(config);
  SPEEDO_TRY(session.restore(state));
  return session.progress().iteration;
}

// From the files that were given, or the net's fillers.
Result<JobStart> start_anew(const MasterOptions& options, JobNets& nets, ParameterStore& store) {
  SPEEDO_TRY(store.clear());
  JobStart start{.checkpoint = nets.take_start(), .from_store = false};
  start.checkpoint.session = options.initial_session;
  return start;
}

Result<Checkpoint> stored(const MasterOptions& options, const MasterConfig& config, JobNets& nets,
                          ParameterStore& store) {
  SPEEDO_ASSIGN(Checkpoint found, read_checkpoint(store, nets.layout(),
                                                  wants_histories(options.merger.stages)));
  SPEEDO_TRY(iteration_of(config, found.session));
  return found;
}

Error nothing_there(const MasterOptions& options, const Error& error) {
  return Error{ErrorCode::kNotFound,
               fmt::format("nothing to resume in the store under job '{}' ({}): check --redis and "
                           "--key-name, leave --resume out to start anew, or give --resume=FILE",
                           options.job, error.message)};
}

// Of the store's state and the files', the one that is further. What is damaged, or another job's,
// only counts as missing if there is the other.
Result<JobStart> newest(const MasterOptions& options, const MasterConfig& config, JobNets& nets,
                        ParameterStore& store) {
  auto in_store = stored(options, config, nets, store);
  const bool has_files = options.initial_weights != nullptr;
  if (!in_store) {
    const Error& error = in_store.error();
    const bool passed_over =
        error.code == ErrorCode::kNotFound ||
        (has_files && (error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kMismatch));
    if (!passed_over) return error;
    const char* const instead = has_files ? "going on from the files" : "starting anew";
    if (error.code == ErrorCode::kNotFound) {
      SPEEDO_INFO("The store has nothing of this job; {}", instead);
    } else {
      SPEEDO_WARN("{}; {}", error.message, instead);
    }
    return start_anew(options, nets, store);
  }
  if (has_files) {
    SPEEDO_ASSIGN(const std::uint64_t files, iteration_of(config, options.initial_session));
    SPEEDO_ASSIGN(const std::uint64_t there, iteration_of(config, in_store->session));
    if (files > there) {
      SPEEDO_INFO("The files' iteration {} is beyond the store's {}", files, there);
      return start_anew(options, nets, store);
    }
  }
  return JobStart{.checkpoint = std::move(in_store).value(), .from_store = true};
}

}  // namespace

Result<JobSpec> with_seed_of_job(JobSpec spec, MasterOptions::Resume resume,
                                 ParameterStore& store) {
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(spec));
  if (solver.random_seed() >= 0 || resume == MasterOptions::Resume::kNo) return with_seed(spec);
  const auto record = store.get_blob(job_key());
  if (!record) return with_seed(spec);
  SPEEDO_ASSIGN(const JobSpec before, decode_job(*record));
  SPEEDO_ASSIGN(const caffe::SolverParameter same, parse_solver(before));
  solver.set_random_seed(same.random_seed());
  spec.solver_text = to_prototxt(solver);
  return with_seed(spec);
}

Result<JobStart> find_start(const MasterOptions& options, const MasterConfig& config,
                            JobNets& nets, ParameterStore& store) {
  if (options.resume == MasterOptions::Resume::kNo) {
    SPEEDO_TRY(iteration_of(config, options.initial_session));
    return start_anew(options, nets, store);
  }
  if (options.resume == MasterOptions::Resume::kNewest) return newest(options, config, nets, store);
  auto found = stored(options, config, nets, store);
  if (!found && found.error().code == ErrorCode::kNotFound) {
    return nothing_there(options, found.error());
  }
  if (!found) return found.error();
  return JobStart{.checkpoint = std::move(found).value(), .from_store = true};
}

}  // namespace speedo
