#pragma once

#include <speedo/base/result.hpp>
#include <speedo/train/trainer.hpp>

#include "caffe.pb.h"

namespace speedo {

// The solver that a job describes, but for debug_info. Error: kConfig.
Result<caffe::SolverParameter> parse_solver(const JobSpec& job);

// The same solver without its test nets, so that a worker builds only what it trains.
caffe::SolverParameter without_tests(caffe::SolverParameter solver);

// The solver as a stage of its job changes it.
caffe::SolverParameter solver_of(const caffe::SolverParameter& solver, const UpdateSpec& update);

// Gives a job without a random_seed one drawn from the system. All processes of a job must draw the
// same shuffles, or records would be trained twice.
Result<JobSpec> with_seed(JobSpec job);

}  // namespace speedo
