// Adam as the master's rule, as processes. Whoever computes it, each run's gradient is the same
// number, so however many workers there are, and whoever dies, weights and both histories end as
// those of one process, bit for bit.
#include <signal.h>

#include <fstream>
#include <iterator>

#include "caffe.pb.h"
#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;

constexpr std::uint64_t kAdamIterations = 800;
constexpr std::uint64_t kOfLargeWeights = 200;

Cluster::Options with_adam() {
  Cluster::Options options;
  options.solver = "type: \"Adam\" momentum2: 0.99";
  options.rows = 256;
  return options;
}

const Arguments kAdamMomentum{"--momentum", "0.9"};

std::string adam_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<float> values_in(const caffe::BlobProto& blob) {
  return {blob.data().begin(), blob.data().end()};
}

// What a training has left: its weights, and Adam's two blocks of histories.
struct AdamLeft {
  std::vector<float> weights, means, squares;
  bool operator==(const AdamLeft&) const = default;
};
AdamLeft left_by(const Cluster& cluster, std::uint64_t iterations) {
  const std::string stem = "snap_iter_" + std::to_string(iterations);
  caffe::NetParameter model;
  caffe::SolverState state;
  REQUIRE(model.ParseFromString(adam_file(cluster.file(stem + ".caffemodel"))));
  REQUIRE(state.ParseFromString(adam_file(cluster.file(stem + ".solverstate"))));
  REQUIRE(static_cast<std::uint64_t>(state.iter()) == iterations);
  REQUIRE(state.history_size() == 2);
  AdamLeft left{{}, values_in(state.history(0)), values_in(state.history(1))};
  for (const caffe::LayerParameter& layer : model.layer()) {
    if (layer.blobs_size() > 0) left.weights = values_in(layer.blobs(0));
  }
  REQUIRE_FALSE(left.weights.empty());
  return left;
}

AdamLeft train_alone(const Cluster& cluster, std::uint64_t iterations) {
  Process alone(test::joined({test::program("speedo"), "train", "--solver",
                              cluster.file("solver.prototxt").string()},
                             kAdamMomentum),
                cluster.file("alone"));
  const auto code = alone.wait(std::chrono::seconds{120});
  INFO(alone.errors());
  REQUIRE(code == 0);
  return left_by(cluster, iterations);
}

void require_adam_end(Process& master, std::uint64_t iterations) {
  const auto code = master.wait(std::chrono::seconds{120});
  INFO(master.errors());
  REQUIRE(code == 0);
  CHECK(Cluster::result(master)["iterations"] == iterations);
}

}  // namespace

TEST_CASE("Adam by the master, a worker killed, another one late: the weights of one process") {
  const bool replicated = GENERATE(false, true);
  CAPTURE(test::seed(), replicated);
  Random random = Random::derive(test::seed(), {41, replicated ? 1U : 0U});
  Cluster cluster(kAdamIterations, with_adam());
  const AdamLeft alone = train_alone(cluster, kAdamIterations);
  Arguments flags = test::joined(kAdamMomentum, {"--sync", "--gradient-only", "--workers", "3"});
  if (replicated) flags = test::joined(flags, {"--replicated", "--no-factors"});
  Process& master = cluster.start_master(flags);
  const std::string address = cluster.address();
  for (int i = 0; i < 3; ++i) cluster.start_worker(address);
  REQUIRE(cluster.gets_beyond(random.below(kAdamIterations / 4)));
  cluster.workers().front().signal(SIGKILL);
  CHECK(cluster.workers().front().wait() == 128 + SIGKILL);
  cluster.start_worker(address);
  require_adam_end(master, kAdamIterations);
  CHECK((left_by(cluster, kAdamIterations) == alone));
}

TEST_CASE("Adam by a master that dies, and by its successor: the weights of one process") {
  const bool replicated = GENERATE(false, true);
  CAPTURE(test::seed(), replicated);
  Random random = Random::derive(test::seed(), {42, replicated ? 1U : 0U});
  Cluster cluster(kAdamIterations, with_adam());
  const AdamLeft alone = train_alone(cluster, kAdamIterations);
  const test::ReservedPort reserved;
  Arguments flags = test::joined(kAdamMomentum, {"--sync", "--gradient-only", "--workers", "2",
                                             "--port", reserved.text()});
  if (replicated) flags = test::joined(flags, {"--replicated", "--no-factors"});
  Process& first = cluster.start_master(flags);
  cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(cluster.gets_beyond(20 + random.below(kAdamIterations / 4)));
  first.signal(SIGKILL);
  CHECK(first.wait() == 128 + SIGKILL);
  Process& second = cluster.start_master(test::joined(flags, Arguments{"--resume"}));
  require_adam_end(second, kAdamIterations);
  CHECK(test::resumed_from(second) > 0);
  CHECK((left_by(cluster, kAdamIterations) == alone));
}

TEST_CASE("Adam by mergers beside two servers: the weights of one process") {
  Cluster::Options options = with_adam();
  options.servers = 2;
  options.rows = 9000;
  Cluster cluster(kOfLargeWeights, options);
  const AdamLeft alone = train_alone(cluster, kOfLargeWeights);
  Process& master = cluster.start_master(test::joined(
      kAdamMomentum, {"--sync", "--gradient-only", "--workers", "2", "--shards", "2"}));
  const std::string address = cluster.address();
  for (const char* shard : {"--shard=1", "--shard=2"}) cluster.start_worker(address, {shard});
  cluster.start_worker(address, {"--workers", "2"});
  require_adam_end(master, kOfLargeWeights);
  CHECK((left_by(cluster, kOfLargeWeights) == alone));
}

}  // namespace speedo
