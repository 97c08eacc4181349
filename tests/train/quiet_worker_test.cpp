// Workers on a device beside the host: the steps between a run's first and last wait for no loss.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/gpu/gpu_double.hpp"
#include "support/skip.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

JobSpec quiet_job(const std::string& extra, std::uint32_t steps, bool dropout = true) {
  JobSpec job{.solver_text = test::generated_solver(8, extra + " random_seed: 1", dropout),
              .base = {}};
  job.stages.front().steps_per_run = steps;
  return job;
}

test::TrainerCluster::Options on_double(std::shared_ptr<test::CallLog> log) {
  test::TrainerCluster::Options options;
  options.parts.make_backend = [log]() -> Result<std::unique_ptr<Backend>> {
    return test::make_gpu_double(log);
  };
  return options;
}

TEST_CASE("runs of quiet steps leave what runs leave whose every step is looked at") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("a device beside the host is the subject");
  const std::string fields = GENERATE("base_lr: 0.1 lr_policy: 'inv' gamma: 0.1 power: 0.75 "
                                      "momentum: 0.9",
                                      "base_lr: 0.01 lr_policy: 'fixed' type: 'Adam'");
  CAPTURE(fields);
  const JobSpec job = quiet_job(fields, 6);
  const auto log = std::make_shared<test::CallLog>();
  std::vector<float> weights, losses;
  {
    test::TrainerCluster quiet(job, 1, on_double(log));
    for (int round = 0; round < 2; ++round) quiet.round();
    weights = quiet.weights();
    losses = quiet.losses();
  }
  test::TrainerCluster plain(job, 1);
  for (int round = 0; round < 2; ++round) plain.round();
  CHECK(test::relative_difference(weights, plain.weights()) < 1e-4);
  CHECK(test::relative_difference(losses, plain.losses()) < 1e-4);
  CHECK(log->kernels("note_step") > 0);
  CHECK(log->graphs() > 1);
  const std::vector<std::string> violations = log->violations();
  CAPTURE(violations);
  CHECK(violations.empty());
}

TEST_CASE("a quiet step whose loss is not finite is run again, and its run says where") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("a device beside the host is the subject");
  // The first step leaves weights that give infinities.
  const JobSpec job = quiet_job("base_lr: 1e38 lr_policy: 'fixed'", 6, false);
  const auto log = std::make_shared<test::CallLog>();
  test::TrainerCluster quiet(job, 1, on_double(log));
  const RunReport report = quiet.train(0);
  CHECK_FALSE(std::isfinite(report.loss));
  CHECK_FALSE(report.fault.empty());
  CHECK(log->kernels("note_step") > 0);
  test::TrainerCluster plain(job, 1);
  CHECK(plain.train(0).fault == report.fault);
}

}  // namespace
}  // namespace speedo
