#include "sim/proof/quadratic_nets.hpp"

#include <utility>
#include <vector>

#include "train/job/job_solver.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kTestTime = std::chrono::milliseconds(200);
constexpr Instant kSnapshotTime = std::chrono::milliseconds(20);

void put_values(const std::vector<float>& values, caffe::BlobProto& blob) {
  for (const float each : values) blob.add_data(each);
}

std::vector<float> values_of(const caffe::BlobProto& blob) {
  return {blob.data().begin(), blob.data().end()};
}

}  // namespace

QuadraticNets::QuadraticNets(ProcessPlatform& platform, const Quadratic& problem)
    : platform_(platform), problem_(problem), thread_(platform, "nets") {}

Result<std::unique_ptr<JobNets>> QuadraticNets::create(ProcessPlatform& platform,
                                                       const Quadratic& problem,
                                                       const JobNetsOptions& options) {
  std::unique_ptr<QuadraticNets> nets(new QuadraticNets(platform, problem));
  SPEEDO_ASSIGN(nets->solver_, parse_solver(options.job));
  SPEEDO_TRY(nets->read_start(options));
  return std::unique_ptr<JobNets>(std::move(nets));
}

// As snapshot() has written them.
Result<void> QuadraticNets::read_start(const JobNetsOptions& options) {
  start_.weights = problem_.start();
  if (!options.initial_weights) return {};
  start_.weights = values_of(options.initial_weights->layer(0).blobs(0));
  if (start_.weights.size() != problem_.size()) {
    return Error{ErrorCode::kMismatch, "the files are of another problem"};
  }
  if (!options.initial_state || !wants_histories(options.job.stages)) return {};
  for (const caffe::BlobProto& history : options.initial_state->history()) {
    start_.histories.push_back(values_of(history));
  }
  return {};
}

void QuadraticNets::test(std::shared_ptr<const Merger::Copy> weights,
                         std::function<void(Result<Scores>)> done) {
  thread_.post([this, weights = std::move(weights), done = std::move(done)] {
    platform_.sleep(kTestTime);
    TestScores scores;
    scores.loss = static_cast<float>(problem_.distance(weights->weights));
    scores.accuracy = 1.0F / (1.0F + scores.loss);
    done(Scores{scores});
  });
}

void QuadraticNets::snapshot(std::uint64_t iteration,
                             std::shared_ptr<const Merger::Copy> weights, WriteSnapshot write,
                             std::function<void(Result<void>)> done) {
  thread_.post([this, iteration, weights = std::move(weights), write = std::move(write),
                done = std::move(done)] {
    platform_.sleep(kSnapshotTime);
    caffe::NetParameter model;
    put_values(weights->weights, *model.add_layer()->add_blobs());
    caffe::SolverState state;
    state.set_iter(static_cast<int>(iteration));
    for (const auto& history : weights->histories) put_values(history, *state.add_history());
    done(write(static_cast<std::int64_t>(iteration), model, state, weights->state));
  });
}

}  // namespace speedo::sim
