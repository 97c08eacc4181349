#include "train/job/job_solver.hpp"

#include <utility>

#include <speedo/core/solver.hpp>

#include "core/prototxt.hpp"

namespace speedo {

Result<caffe::SolverParameter> parse_solver(const JobSpec& job) {
  SPEEDO_ASSIGN(auto solver, parse_solver_prototxt(job.solver_text, "the job's solver"));
  solver.clear_debug_info();  // which no node prints: its nets need not keep their blobs
  return solver;
}

caffe::SolverParameter without_tests(caffe::SolverParameter solver) {
  solver.clear_test_net();
  solver.clear_test_net_param();
  solver.clear_test_state();
  solver.clear_test_iter();
  solver.clear_test_interval();
  return solver;
}

caffe::SolverParameter solver_of(const caffe::SolverParameter& solver, const UpdateSpec& update) {
  caffe::SolverParameter changed = solver;
  if (update.base_lr) changed.set_base_lr(*update.base_lr);
  if (update.momentum) changed.set_momentum(*update.momentum);
  if (update.weight_decay) changed.set_weight_decay(*update.weight_decay);
  return changed;
}

Result<JobSpec> with_seed(JobSpec job) {
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(job));
  settle_seed(solver);
  job.solver_text = to_prototxt(solver);
  return job;
}

}  // namespace speedo
