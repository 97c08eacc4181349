#pragma once

#include <speedo/base/result.hpp>

#include "actors/node.hpp"
#include "caffe.pb.h"
#include "main/cluster_flags.hpp"

namespace speedo {

// What the flags of a cluster and its prototxts come to.
struct ClusterJob {
  MasterOptions options;
  caffe::SolverParameter solver;  // nets inline, flags applied
};

// Reads the solver, its nets and the weights to start from. Requires: check(flags) passed.
// Errors: kUsage, kConfig, kNotFound, kData.
Result<ClusterJob> make_cluster_job(const ClusterFlags& flags);

}  // namespace speedo
