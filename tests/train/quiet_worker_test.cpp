// Workers on a device beside the host: the steps between a run's first and last wait for no loss.

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/generated_feeds.hpp"
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

// Data with a NaN in one batch.
class BrokenFeed final : public test::GeneratedFeed {
 public:
  BrokenFeed(std::int64_t batch, std::uint64_t broken)
      : test::GeneratedFeed(batch, 0.0), broken_(broken) {}
  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override {
    SPEEDO_ASSIGN(auto read, test::GeneratedFeed::read(batch));
    if (batch != broken_) return read;
    values_.assign(read[0].begin(), read[0].end());
    values_[0] = std::nanf("");
    read[0] = values_;
    return read;
  }

 private:
  const std::uint64_t broken_;
  std::vector<float> values_;
};

class BrokenFeeds final : public FeedFactory {
 public:
  explicit BrokenFeeds(std::uint64_t broken) : broken_(broken) {}
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions& /*options*/) override {
    return std::unique_ptr<BatchFeed>(
        std::make_unique<BrokenFeed>(layer.data_param().batch_size(), broken_));
  }

 private:
  const std::uint64_t broken_;
};

TEST_CASE("a loud step behind quiet ones whose data are not finite says so of them") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("a device beside the host is the subject");
  const int passes = GENERATE(1, 2);
  CAPTURE(passes);
  const JobSpec job = quiet_job("base_lr: 0.1 lr_policy: 'fixed' iter_size: " +
                                    std::to_string(passes), 6, false);
  const auto log = std::make_shared<test::CallLog>();
  test::TrainerCluster::Options options = on_double(log);
  const auto last = static_cast<std::uint64_t>(6 * passes - 1);
  options.parts.make_feeds = [last]() -> std::unique_ptr<FeedFactory> {
    return std::make_unique<BrokenFeeds>(last);
  };
  test::TrainerCluster cluster(job, 1, options);
  const RunReport report = cluster.train(0);
  CHECK(log->kernels("note_step") > 0);
  CHECK_FALSE(std::isfinite(report.loss));
  CHECK(report.fault == "blob 'data' of layer 'data'");
}

}  // namespace
}  // namespace speedo
