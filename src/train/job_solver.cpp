#include "train/job_solver.hpp"

#include <utility>

#include <speedo/core/solver.hpp>

#include "core/prototxt.hpp"

namespace speedo {

Result<caffe::SolverParameter> parse_solver(const JobSpec& job) {
  return parse_solver_prototxt(job.solver_text, "the job's solver");
}

caffe::SolverParameter without_tests(caffe::SolverParameter solver) {
  solver.clear_test_net();
  solver.clear_test_net_param();
  solver.clear_test_state();
  solver.clear_test_iter();
  solver.clear_test_interval();
  return solver;
}

Result<JobSpec> with_seed(JobSpec job) {
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(job));
  settle_seed(solver);
  job.solver_text = to_prototxt(solver);
  return job;
}

}  // namespace speedo
