// Steps of replicated updates that are made in parts, one a server: what workers make of them is
// what one merger's steps give, whoever dies in between.
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

#include "store/sharded_key_value.hpp"
#include "train/joined_fixture.hpp"
#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

constexpr std::uint64_t kReplicas = 3;

// Of several chunks, an inner product's gradient a large part of them.
std::string large_solver(const std::string& extra = "") {
  std::string text = test::generated_solver(
      4, "base_lr: 0.05 lr_policy: \"fixed\" momentum: 0.9 max_iter: 100 display: 0 "
         "random_seed: 5 " + extra, true);
  const std::string before = "num_output: 24 ";
  text.replace(text.find(before), before.size(), "num_output: 50000 ");
  return text;
}

JobSpec job_of(bool factors, std::size_t parts = 1) {
  return {.solver_text = large_solver(),
          .base = {},
          .stages = {{.kind = UpdateKind::kGradientOnly, .replicated = true, .factors = factors}},
          .expected_workers = kReplicas,
          .step_parts = static_cast<std::uint32_t>(parts)};
}

// A store of several servers in this memory, as often as somebody opens it.
struct Servers {
  explicit Servers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) all.push_back(std::make_shared<MemoryKeyValue>());
  }
  std::shared_ptr<ParameterStore> open() const {
    const std::vector<std::shared_ptr<KeyValue>> maps(all.begin(), all.end());
    if (maps.size() == 1) return std::make_shared<ChunkedStore>(maps.front(), "m");
    return std::make_shared<ChunkedStore>(std::make_shared<ShardedKeyValue>(maps, "m"), "m");
  }
  std::vector<std::shared_ptr<MemoryKeyValue>> all;
};

struct InParts {
  InParts(bool factors, std::size_t parts)
      : servers(parts),
        cluster(job_of(factors, parts), kReplicas, {.store = servers.open(), .desk = desk}) {}

  std::shared_ptr<test::Elsewhere> offer(std::size_t part) {
    auto merger = std::make_shared<test::Elsewhere>(cluster.step_setup(part, servers.open()));
    desk->offer({part, "elsewhere", merger});
    return merger;
  }

  Servers servers;
  std::shared_ptr<PartDesk> desk = std::make_shared<PartDesk>(real_platform());
  TrainerCluster cluster;
};

std::vector<float> trained_whole(bool factors, int rounds) {
  TrainerCluster cluster(job_of(factors), kReplicas);
  for (int round = 0; round < rounds; ++round) cluster.round();
  return cluster.weights();
}

TEST_CASE("steps made in parts are those of one merger, bit for bit") {
  const bool factors = GENERATE(false, true);
  const std::size_t parts = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3},
                                     std::size_t{7});
  CAPTURE(factors, parts);
  const int rounds = 5;
  InParts of(factors, parts);
  for (int round = 0; round < rounds; ++round) of.cluster.round();
  CHECK((of.cluster.weights() == trained_whole(factors, rounds)));
  const auto step = of.servers.open()->read(step_key(0));
  REQUIRE(step);
  const auto header = decode_step_header((*step)->info().state);
  REQUIRE(header);
  CHECK(header->parts == parts);
}

TEST_CASE("steps that are made and read ahead of their order are the same") {
  const bool factors = GENERATE(false, true);
  CAPTURE(factors);
  const int rounds = 6;
  InParts of(factors, 3);
  int begun_ahead = 0;
  for (int round = 0; round < rounds; ++round) {
    of.cluster.train_all();
    of.cluster.expect({0, 1, 2}, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    begun_ahead += of.cluster.merge({0, 1, 2}, true).begun_ahead ? 1 : 0;
  }
  // Of the first step no part's merger knows the version.
  CHECK(begun_ahead == rounds - 1);
  CHECK((of.cluster.weights() == trained_whole(factors, rounds)));
}

TEST_CASE("mergers of steps elsewhere come, go and are replaced, and nothing shows it") {
  const bool factors = GENERATE(false, true);
  const int dies_before = GENERATE(1, 2, 3);
  CAPTURE(factors, dies_before);
  const int rounds = 7;
  InParts of(factors, 3);
  std::vector<std::shared_ptr<test::Elsewhere>> mergers;
  for (int round = 0; round < rounds; ++round) {
    if (round == 1) {
      mergers.push_back(of.offer(0));
      mergers.push_back(of.offer(1));
      mergers[0]->die_before_answer(dies_before);
    }
    if (round == 5) mergers.push_back(of.offer(1));
    of.cluster.round();
  }
  CHECK(mergers[0]->is_gone());
  CHECK(mergers[1]->orders() > 3);
  CHECK(mergers[1]->dismissed() == kPartTaken);
  CHECK(mergers[2]->orders() > 1);
  CHECK((of.cluster.weights() == trained_whole(factors, rounds)));
}

TEST_CASE("a contribution that is not finite in one part is in no step") {
  InParts of(true, 2);
  of.cluster.round();
  const std::vector<float> before = of.cluster.weights();
  of.cluster.train_all();
  const auto store = of.servers.open();
  const std::string key = contribution_key(0, 1);
  const auto reader = store->read(key);
  REQUIRE(reader);
  const RecordInfo info = (*reader)->info();
  std::vector<float> values(info.element_count);
  REQUIRE(get(*store, key, info.model, values));
  values[kChunkElements + 7] = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(put(*store, key, info, values));
  const MergeResult result = of.cluster.merge_some({0, 1, 2});
  CHECK(result.rejected == std::vector<WorkerId>{WorkerId{1}});
  CHECK(result.not_finite == result.rejected);
  CHECK((of.cluster.weights() != before));
}

TEST_CASE("a server that loses its part loses a round, and no step is half of anything") {
  InParts of(true, 2);
  of.cluster.round();
  const std::vector<float> before = of.cluster.weights();
  of.cluster.train_all();
  of.servers.all[1]->set_image({});
  const MergeResult result = of.cluster.merge_some({0, 1, 2});
  CHECK(result.rejected.size() == kReplicas);
  CHECK((of.cluster.weights() == before));
  for (int round = 0; round < 2; ++round) of.cluster.round();
  CHECK((of.cluster.weights() != before));
}

}  // namespace
}  // namespace speedo
