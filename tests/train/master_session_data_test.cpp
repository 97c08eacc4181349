// What goes with a run and with its contribution: shards of the data, weights, what was merged.

#include "support/catch.hpp"

#include <limits>

#include "master_session_driver.hpp"

namespace speedo {

namespace {

MasterConfig by_speed(std::uint64_t workers) {
  MasterConfig config = config_for(workers, 1000);
  config.shard_by_speed = true;
  return config;
}

// A synchronous round of workers 0, 1, ... on connections 5, 6, ..., whose runs take so long for
// each shard.
std::string round(MasterDriver& master, std::uint64_t number,
                  const std::vector<std::uint64_t>& compute_us) {
  std::string text;
  for (std::uint64_t i = 0; i < compute_us.size(); ++i) {
    const TrainMessage train = master.trains.at(5 + i);
    text = master.on(master_event::Trained{
        {5 + i}, {i, train.run, 0, number, 10 * train.shards,
                  {.forward_us = compute_us[i] * train.shards, .exchange_us = 999}, {}}});
  }
  CHECK(text.starts_with("mean"));
  return master.merged(number, number + 1);
}

std::vector<std::uint64_t> shards(MasterDriver& master) {
  std::vector<std::uint64_t> all;
  for (const auto& [peer, train] : master.trains) all.push_back(train.shards);
  return all;
}

std::vector<float> weights(const MasterDriver& master) {
  std::vector<float> all;
  for (const auto& each : master.last_merge.contributions) all.push_back(each.weight);
  return all;
}

}  // namespace

TEST_CASE("in rounds a faster worker gets more shards, the slowest one, up to the limit") {
  MasterDriver master(by_speed(4), "sync");
  for (std::uint64_t i = 0; i < 4; ++i) master.join(5 + i, i);
  for (std::uint64_t i = 0; i < 20; ++i) round(master, i, {100, 200, 5, 33});
  CHECK(shards(master) == std::vector<std::uint64_t>{2, 1, kShardsPerRunMax, 6});
  CHECK(master.trains[5].shard + 2 <= master.trains[5].next_shard);
}

TEST_CASE("in rounds workers get shards by the user's ratios, whole ones that come to them") {
  MasterConfig config = config_for(3, 1000);
  config.shard_ratios = {{"host5", 2.5}, {"host6", 1.25}};
  MasterDriver master(config, "sync");
  for (std::uint64_t i = 0; i < 3; ++i) master.join(5 + i, i);
  std::vector<std::uint64_t> sums(3);
  for (std::uint64_t i = 0; i < 41; ++i) {
    // The first round and the shards reserved for the second are alike.
    const std::vector<std::uint64_t> now = shards(master);
    for (std::size_t w = 0; w < 3 && i > 0; ++w) sums[w] += now[w];
    round(master, i, {100, 100, 100});
  }
  CHECK(sums == std::vector<std::uint64_t>{100, 50, 40});
  MasterDriver async(config, "async");
  async.join(5, 0);
  async.join(6, 1);
  CHECK(async.trains[5].shards == 1);
}

TEST_CASE("a ratio of a worker or host that is not here is said when training starts") {
  MasterConfig config = config_for(2, 1000);
  config.shard_ratios = {{"host5", 2.5}, {"host6/1/0", 2.0}, {"ghost", 3.0}};
  MasterDriver master(config, "sync");
  master.join(5, 0);
  CHECK_FALSE(master.noted("not here"));
  master.join(6, 1);
  CHECK(master.noted("--shard-by names workers that are not here: ghost"));
}

TEST_CASE("contributions count for their shards, so that the mean is that over samples") {
  MasterDriver master(by_speed(2), "sync");
  master.join(5, 0);
  master.join(6, 1);
  for (std::uint64_t i = 0; i < 3; ++i) round(master, i, {100, 300});
  CHECK(weights(master) == std::vector<float>{1.5F, 0.5F});   // 3 shards and 1 of 4, times 2
  MasterDriver even(by_speed(3), "sync");
  for (std::uint64_t i = 0; i < 3; ++i) even.join(5 + i, i);
  for (std::uint64_t i = 0; i < 3; ++i) round(even, i, {100, 110, 105});
  CHECK(weights(even) == std::vector<float>{1.0F, 1.0F, 1.0F});
}

TEST_CASE("elastic steps are never weighted by shards") {
  MasterConfig config = by_speed(2);
  config.stages.front().update.kind = UpdateKind::kElastic;
  MasterDriver master(config, "sync-easgd");
  master.join(5, 0);
  master.join(6, 1);
  for (std::uint64_t i = 0; i < 3; ++i) round(master, i, {100, 300});
  CHECK(shards(master) == std::vector<std::uint64_t>{3, 1});
  CHECK(weights(master) == std::vector<float>{1.0F, 1.0F});
}

TEST_CASE("without rounds, or without asking for it, everyone gets one shard") {
  MasterDriver async(by_speed(2), "async");
  MasterDriver plain(config_for(2, 1000), "sync");
  for (MasterDriver* master : {&async, &plain}) {
    master->join(5, 0);
    master->join(6, 1);
  }
  for (std::uint64_t i = 0; i < 5; ++i) round(plain, i, {10, 100});
  CHECK(shards(plain) == std::vector<std::uint64_t>{1, 1});
  std::uint64_t merge = 0;
  for (std::uint64_t i = 0; i < 5; ++i) {
    for (std::uint64_t w = 0; w < 2; ++w) {
      async.trained(5 + w, w, async.trains[5 + w].run, 1.0F, merge, w == 0 ? 10 : 100);
      async.merged(merge, merge + 1);
      merge += 1;
    }
  }
  CHECK(shards(async) == std::vector<std::uint64_t>{1, 1});
}

TEST_CASE("all shards of a dead worker are dealt again") {
  MasterDriver master(by_speed(2), "sync");
  master.join(5, 0);
  master.join(6, 1);
  for (std::uint64_t i = 0; i < 3; ++i) round(master, i, {100, 400});
  const TrainMessage lost = master.trains[5];
  CHECK(lost.shards == 4);
  master.lost(5);
  const std::uint64_t run = master.trains[6].run;
  master.trained(6, 1, run);
  master.merged(3, 4);
  CHECK(master.trains[6].next_shard == lost.shard);
}

TEST_CASE("weight by staleness: 1/Y, Y = 1 + updates since the weights it was computed from") {
  MasterConfig config = config_for(3, 100);
  config.stages.front().weight_by_staleness = true;
  MasterDriver master(config, "async");
  for (std::uint64_t i = 0; i < 3; ++i) master.join(5 + i, i);
  master.trained(5, 0, 0);
  CHECK(weights(master) == std::vector<float>{1.0F});
  master.trained(6, 1, 1);
  master.trained(7, 2, 2);
  master.merged(0, 1);
  CHECK(weights(master) == std::vector<float>{0.5F});
  master.merged(1, 2);
  CHECK(weights(master) == std::vector<float>{1.0F / 3.0F});
  master.merged(2, 3);
  CHECK(master.session.progress().staleness_sum == 3.0);
  master.trained(5, 0, master.trains[5].run, 1.0F, 4);   // newer than told: as good as new
  CHECK(weights(master) == std::vector<float>{1.0F});
}

TEST_CASE("in a mean each contribution has its own staleness") {
  MasterConfig config = config_for(2, 100);
  config.stages.front().weight_by_staleness = true;
  config.first_version = {10};
  MasterDriver master(config, "sync");
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0, 1.0F, 10);
  master.trained(6, 1, 1, 1.0F, 7);
  CHECK(weights(master) == std::vector<float>{1.0F, 0.25F});
}

TEST_CASE("without it stale contributions count in full") {
  MasterDriver master(config_for(2, 100), "async");
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  master.trained(6, 1, 1);
  master.merged(0, 1);
  CHECK(weights(master) == std::vector<float>{1.0F});
}

TEST_CASE("an order says whether the last contribution was merged") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  CHECK(master.trains[5].merged_run == kNoRun);
  master.trained(5, 0, 0);
  master.merged(0, 1);
  CHECK(master.trains[5].merged_run == 0);
  master.trained(5, 0, 1);
  master.merged(1, 1, {{0}});                                                  // rejected
  CHECK(master.trains[5].merged_run == kNoRun);
  master.trained(5, 0, 2);
  master.merged(2, 2);
  CHECK(master.trains[5].merged_run == 2);
  master.trained(5, 0, 3, std::numeric_limits<float>::quiet_NaN());            // failed
  CHECK(master.trains[5].run == 4);
  CHECK(master.trains[5].merged_run == kNoRun);
}

TEST_CASE("a contribution that the schedule drops was not merged") {
  MasterConfig config = config_for(2, 100);
  config.stages.front().strategy.window = 2;
  MasterDriver master(config, "weedout");
  master.join(5, 0);
  master.join(6, 1);
  std::uint64_t merge = 0;
  for (int i = 0; i < 3; ++i) {           // the ring holds worker 0 alone
    master.trained(5, 0, master.trains[5].run);
    master.merged(merge, merge + 1);
    CHECK(master.trains[5].merged_run != kNoRun);
    merge += 1;
  }
  master.trained(6, 1, master.trains[6].run);
  CHECK(master.session.progress().discarded == 1);
  CHECK(master.trains[6].run > 3);
  CHECK(master.trains[6].merged_run == kNoRun);
}

TEST_CASE("another incarnation starts without a past") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  master.trained(5, 0, 0);
  master.hello(5);
  master.merged(0, 1);
  master.ready(5, 1);
  CHECK(master.trains[5].merged_run == kNoRun);
}

}  // namespace speedo
