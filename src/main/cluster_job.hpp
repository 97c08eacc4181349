#pragma once

#include <functional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/schedule.hpp>

#include "caffe.pb.h"
#include "cli/flags/cluster_flags.hpp"
#include "cli/solver_file.hpp"
#include "train/job/master_options.hpp"
#include "train/job/open_store.hpp"

namespace speedo {

// What the flags of a cluster and its prototxts come to.
struct ClusterJob {
  MasterOptions options;
  caffe::SolverParameter solver;  // nets inline, flags applied
  bool drew_seed = false;         // neither solver nor flags gave one; not yet logged
  // With --resume=auto, see MasterHooks.
  std::function<void(MasterOptions& options)> choose_files = {};
};

// Reads the solver, its nets and the weights to start from, unless --resume gives them
// (set_resume). Requires: check(flags) passed. Errors: kUsage, kConfig, kNotFound, kData.
Result<ClusterJob> make_cluster_job(const ClusterFlags& flags);
// What it would refuse, for --dry-run; empty: nothing.
std::string refusal_of(const ClusterFlags& flags);

// Reads the prototxts, and finds what is wrong with them before anything is started. The nets are
// inline then.
Result<SolverFile> read_job_files(const ClusterFlags& flags);

// What the workers of a cluster that is started here are told, but for what tells one from another.
std::vector<std::string> worker_flags(const ClusterFlags& flags, int compute_nice);

// A job's name, if none is given: the net's, with only the characters that keys may have. Of one
// that is too long for check_job_name(), and for the names of files, a digest stands for the rest.
std::string job_name(const std::string& net);
// The same of the solver's net, which is inline.
std::string default_job_name(const caffe::SolverParameter& solver);
// The name that the flags give, or that.
std::string job_of(const ClusterFlags& flags, const caffe::SolverParameter& solver);

// Whether solver histories are the master's, so that checkpoints hold them.
bool master_keeps_history(const std::vector<Schedule>& stages);

// What --resume asks for: reads the checkpoint files that it names or finds. A seed that the job
// drew is the one that it began with, else its data would come in another order. Errors: those of
// load_checkpoint(), and of the nets, which are built to know their fingerprint.
Result<void> set_resume(const ClusterFlags& flags, const TrainerParts& parts,
                        const OpenStore& open_store, ClusterJob& job);

}  // namespace speedo
