// Every schedule reduces to its neighbour where theory says so: the real strategies, nets,
// trainers, store and merger, one thread at a time.
#include <algorithm>
#include <cmath>
#include <map>

#include <speedo/cpu/cpu_backend.hpp>
#include <speedo/train/strategy.hpp>

#include "support/catch.hpp"
#include "support/deferred_backend.hpp"
#include "support/random_seed.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

constexpr const char* kInv = "lr_policy: \"inv\" gamma: 0.01 power: 0.75 ";
constexpr const char* kFixed = "lr_policy: \"fixed\" ";
constexpr const char* kMomentum = "base_lr: 0.1 momentum: 0.9 weight_decay: 0.002 ";
constexpr const char* kPlain = "base_lr: 0.1 ";  // nothing but gradients

std::string solver(int batch, const std::string& rates = kMomentum,
                   const std::string& policy = kInv) {
  return test::generated_solver(batch, policy + rates + "random_seed: 5", false);
}

JobSpec scheduled_job(const UpdateSpec& update, const std::string& text = solver(8)) {
  return {.solver_text = text, .base = {}, .stages = {update}};
}

// A strategy that schedules a cluster. A worker that is told to train reads its weights at once;
// the test says when it reports.
class ScheduledCluster {
 public:
  ScheduledCluster(const StrategyOptions& options, const JobSpec& job, std::uint64_t workers)
      : cluster_(job, workers), strategy_(test::value_of(make_strategy(options))) {
    Joined joined;
    for (std::uint64_t worker = 0; worker < workers; ++worker) {
      joined.workers.push_back(WorkerId{worker});
      joined.names.push_back("w" + std::to_string(worker) + "/1/0");
    }
    carry_out(strategy_->on(joined));
  }

  bool runs(std::uint64_t worker) const { return reports_.count(worker) > 0; }

  void report(std::uint64_t worker) {
    const RunReport report = reports_.at(worker);
    reports_.erase(worker);
    Trained event;
    event.worker = WorkerId{worker};
    event.run = report.run;
    event.loss = report.loss;
    event.base = report.base;
    event.samples = report.samples;
    event.duration_us = 1000;
    carry_out(strategy_->on(event));
  }

  // A seed is the same pseudo-random order of reports for every schedule.
  std::vector<float> train(int reports, std::uint64_t workers, std::uint64_t seed) {
    Random random(seed);
    for (int done = 0; done < reports;) {
      const std::uint64_t worker = random.below(workers);
      if (!runs(worker)) continue;
      report(worker);
      ++done;
    }
    return cluster_.weights();
  }

  TrainerCluster& cluster() { return cluster_; }

 private:
  void carry_out(const Commands& commands) {
    for (const Command& command : commands) {
      if (const auto* merge = std::get_if<Merge>(&command)) {
        cluster_.merge({merge->worker.value}, false, merge->weight);
      } else if (const auto* average = std::get_if<Average>(&command)) {
        std::vector<std::size_t> workers;
        for (const WorkerId worker : average->workers) workers.push_back(worker.value);
        cluster_.merge(workers, true);
      } else if (const auto* train = std::get_if<Train>(&command)) {
        reports_[train->worker.value] = cluster_.train(train->worker.value);
      }
    }
  }

  TrainerCluster cluster_;
  std::unique_ptr<Strategy> strategy_;
  std::map<std::uint64_t, RunReport> reports_;  // of runs that have not been reported
};

std::vector<float> train_in_rounds(const JobSpec& job, std::uint64_t workers, int rounds) {
  TrainerCluster cluster(job, workers);
  for (int round = 0; round < rounds; ++round) cluster.round();
  return cluster.weights();
}

std::vector<float> contribution_of(TrainerCluster& cluster, std::uint64_t worker) {
  std::vector<float> values(static_cast<std::size_t>(cluster.layout().element_count()));
  REQUIRE(get(*cluster.store(), contribution_key(0, worker), cluster.model(), values));
  return values;
}

}  // namespace

TEST_CASE("staleness 0 with deltas divided by N is sync") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({3})));
  CAPTURE(seed);
  // A fixed rate: it follows the merges, of which there are three to a round here.
  const std::string text = solver(8, kMomentum, kFixed);
  ScheduledCluster ssp({.name = "ssp", .staleness = 0}, scheduled_job({.factor = 3.0F}, text), 3);
  const auto in_rounds = train_in_rounds(scheduled_job({}, text), 3, 12);
  CHECK(test::relative_difference(ssp.train(3 * 12, 3, seed), in_rounds) < 1e-5);
}

TEST_CASE("windows without bound are async, bit for bit") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({3})));
  CAPTURE(seed);
  const auto train = [&](const StrategyOptions& options) {
    return ScheduledCluster(options, scheduled_job({}), 3).train(40, 3, seed);
  };
  const auto async = train({.name = "async"});
  CHECK(async == train({.name = "ssp", .staleness = 1'000'000}));
  CHECK(async == train({.name = "weedout", .window = 1'000'000}));
  CHECK(async == train({.name = "partial-sync", .max_advance = 1'000'000}));
  CHECK(async != train({.name = "ssp", .staleness = 0}));
  // Each worker alone is a group: nobody waits for anybody.
  CHECK(async == train({.name = "grouping", .groups = {{"w0"}, {"w1"}, {"w2"}}}));
}

TEST_CASE("one group is sync, bit for bit") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({3})));
  CAPTURE(seed);
  const auto train = [&](const StrategyOptions& options) {
    return ScheduledCluster(options, scheduled_job({}), 3).train(3 * 10, 3, seed);
  };
  const auto sync = train({.name = "sync"});
  CHECK(sync == train({.name = "grouping", .groups = {{"w0", "w1", "w2"}}}));
  CHECK(sync == train_in_rounds(scheduled_job({}), 3, 10));
}

TEST_CASE("a moving rate of 0 leaves the centre, bit for bit, and the workers to themselves") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({3})));
  CAPTURE(seed);
  for (const UpdateKind kind : {UpdateKind::kElastic, UpdateKind::kElasticMaster}) {
    CAPTURE(static_cast<int>(kind));
    const UpdateSpec update{.kind = kind, .steps_per_run = 2, .moving_rate = 0.0F};
    ScheduledCluster easgd({.name = "easgd"}, scheduled_job(update), 2);
    const auto centre = easgd.cluster().weights();
    CHECK(easgd.train(20, 2, seed) == centre);
    TrainerCluster alone(scheduled_job({.kind = kind, .moving_rate = 0.0F}), 1),
        local(scheduled_job({}), 1);
    for (int run = 0; run < 5; ++run) {
      alone.round();
      local.round();
    }
    CHECK(alone.losses() == local.losses());
  }
}

TEST_CASE("synchronous EASGD with moving rate 1/N moves the centre to the workers' mean") {
  constexpr int kWorkers = 4;
  const UpdateSpec update{
      .kind = UpdateKind::kElasticMaster, .steps_per_run = 3, .moving_rate = 1.0F / kWorkers};
  TrainerCluster cluster(scheduled_job(update), kWorkers);
  for (int round = 0; round < 5; ++round) {
    cluster.round();
    std::vector<float> mean = contribution_of(cluster, 0);
    for (std::uint64_t worker = 1; worker < kWorkers; ++worker) {
      const auto x = contribution_of(cluster, worker);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += x[i];
    }
    for (float& value : mean) value /= kWorkers;
    CHECK(test::relative_difference(cluster.weights(), mean) < 1e-6);
  }
}

TEST_CASE("SpeeDO's form and the worker's form are one when nobody merges in between") {
  for (const std::uint64_t workers : {1U, 3U}) {
    const auto train = [workers](UpdateKind kind) {
      const UpdateSpec update{.kind = kind, .steps_per_run = 2, .moving_rate = 0.3F};
      return train_in_rounds(scheduled_job(update), workers, 8);
    };
    CHECK(train(UpdateKind::kElastic) == train(UpdateKind::kElasticMaster));
  }
}

TEST_CASE("an elastic step is symmetric: centre and workers together move only by gradients") {
  constexpr float kRate = 0.25F;
  const UpdateKind kind = GENERATE(UpdateKind::kElastic, UpdateKind::kElasticMaster);
  const float weight = GENERATE(1.0F, 0.5F);  // as of a stale contribution
  const UpdateSpec update{.kind = kind, .steps_per_run = 3, .moving_rate = kRate};
  TrainerCluster cluster(scheduled_job(update, solver(8, kPlain)), 2);
  for (int round = 0; round < 4; ++round) cluster.round();

  // Without a rate, the workers' own weights stay as the elastic steps leave them.
  cluster.scale_rate(0.0F);
  std::vector<float> sum, own;
  for (int round = 0; round < 4; ++round) {
    const auto centre = cluster.weights();
    cluster.train_all();
    std::vector<float> total = centre, first;
    for (std::uint64_t worker = 0; worker < 2; ++worker) {
      std::vector<float> x = contribution_of(cluster, worker);
      if (kind == UpdateKind::kElastic) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = centre[i] + x[i] / kRate;
      }
      for (std::size_t i = 0; i < x.size(); ++i) total[i] += x[i];
      if (worker == 0) first = x;
    }
    if (round > 0) {
      CHECK(test::relative_difference(total, sum) < 1e-5);
      // What was merged moved the worker; what was not, did not.
      CHECK((test::relative_difference(first, own) > 1e-4) == (round % 2 == 1));
    }
    sum = total;
    own = first;
    if (round % 2 == 0) {
      cluster.merge({0, 1}, true, weight);
      CHECK(test::relative_difference(cluster.weights(), centre) > 1e-4);
    }
  }
}

TEST_CASE("an elastic worker begins at the centre in each incarnation") {
  const UpdateKind kind = GENERATE(UpdateKind::kElastic, UpdateKind::kElasticMaster);
  const bool new_incarnation = GENERATE(true, false);
  CAPTURE(static_cast<int>(kind), new_incarnation);
  TrainerCluster cluster(scheduled_job({.kind = kind, .moving_rate = 0.5F}, solver(8, kPlain)), 2);
  for (int run = 0; run < 3; ++run) cluster.round();
  const auto centre = cluster.weights();
  if (new_incarnation) cluster.prepare(0);
  cluster.scale_rate(0.0F);  // Its weights stay as it found them.
  cluster.train(0);
  cluster.merge({0}, false);
  CHECK((cluster.weights() == centre) == new_incarnation);
}

TEST_CASE("a new incarnation of a worker keeps net and histories") {
  TrainerCluster one(scheduled_job({}), 1), two(scheduled_job({}), 1);
  for (int run = 0; run < 6; ++run) {
    one.round();
    if (run == 3) two.prepare(0);
    two.round();
  }
  CHECK(one.weights() == two.weights());
}

TEST_CASE("progress is seen while a run is under way") {
  TrainerCluster cluster(scheduled_job({.steps_per_run = 2}), 1);
  const std::uint64_t before = cluster.trainer(0).progress();
  cluster.round();
  // Of five layers the first product does the ReLU's forward pass, and the data have no backward
  // one: four forward and four backward, two steps; a chunk in and a chunk out.
  CHECK(cluster.trainer(0).progress() - before == 2 * 8 + 2);
}

TEST_CASE("a worker whose own weights the store lost begins again at the centre") {
  const UpdateSpec update{.kind = UpdateKind::kElasticMaster, .moving_rate = 0.5F};
  TrainerCluster cluster(scheduled_job(update, solver(8, kPlain)), 1);
  for (int run = 0; run < 3; ++run) cluster.round();
  REQUIRE(cluster.store()->erase(local_key(0, 0)));
  cluster.scale_rate(0.0F);
  const auto centre = cluster.weights();
  cluster.round();
  CHECK(contribution_of(cluster, 0) == centre);
  CHECK(cluster.weights() == centre);
}

TEST_CASE("averaging every iteration, updaters too, is sync on gradients is one large batch") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({3})));
  CAPTURE(seed);
  const auto alone = test::train_alone(solver(32), 30);
  const auto gradients =
      train_in_rounds(scheduled_job({.kind = UpdateKind::kGradientOnly}, solver(8)), 4, 30);
  ScheduledCluster averaging({.name = "averaging"},
                             scheduled_job({.updater = UpdaterState::kAverage}, solver(8)), 4);
  const auto averaged = averaging.train(4 * 30, 4, seed);
  CHECK(test::relative_difference(gradients, alone) < 1e-4);
  CHECK(test::relative_difference(averaged, alone) < 1e-4);
  CHECK(test::relative_difference(averaged, gradients) < 1e-4);
}

TEST_CASE("averaging every iteration without updaters is sync, bit for bit") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({3})));
  CAPTURE(seed);
  ScheduledCluster averaging({.name = "averaging"}, scheduled_job({}), 3);
  CHECK(averaging.train(3 * 10, 3, seed) == train_in_rounds(scheduled_job({}), 3, 10));
}

TEST_CASE("averaged updaters are those of the workers") {
  const JobSpec job = scheduled_job({.steps_per_run = 3, .updater = UpdaterState::kAverage});
  TrainerCluster cluster(job, 1);
  for (int round = 0; round < 5; ++round) cluster.round();
  const Merger::Copy copy = cluster.copy();
  REQUIRE(copy.histories.size() == 1);
  // One worker alone: its local training.
  TrainerCluster gradients(scheduled_job({.kind = UpdateKind::kGradientOnly}), 1);
  for (int round = 0; round < 15; ++round) gradients.round();
  const Merger::Copy expected = gradients.copy();
  CHECK(test::relative_difference(copy.weights, expected.weights) < 1e-5);
  CHECK(test::relative_difference(copy.histories[0], expected.histories[0]) < 1e-4);
}

TEST_CASE("updaters that are reset forget the run before") {
  const auto train = [](UpdaterState updater, const std::string& momentum) {
    return train_in_rounds(scheduled_job({.updater = updater}, solver(8, kPlain + momentum)), 1,
                           10);
  };
  CHECK(train(UpdaterState::kReset, "momentum: 0.9 ") ==
        train(UpdaterState::kKeep, "momentum: 0 "));
  CHECK(train(UpdaterState::kReset, "momentum: 0.9 ") !=
        train(UpdaterState::kKeep, "momentum: 0.9 "));
}

TEST_CASE("a scaled rate is the solver's rate, scaled") {
  for (const UpdateKind kind : {UpdateKind::kFullDelta, UpdateKind::kGradientOnly}) {
    const auto train = [kind](const std::string& rate, float scale) {
      TrainerCluster cluster(scheduled_job({.kind = kind}, solver(8, rate + " momentum: 0.9 ")), 2);
      cluster.scale_rate(scale);
      for (int round = 0; round < 8; ++round) cluster.round();
      return cluster.weights();
    };
    CHECK(train("base_lr: 0.05", 2.0F) == train("base_lr: 0.1", 1.0F));
    CHECK(train("base_lr: 0.05", 1.0F) != train("base_lr: 0.1", 1.0F));
  }
}

TEST_CASE("a backend whose memory the host does not see trains the same") {
  const UpdateSpec updates[] = {
      {},
      {.steps_per_run = 2},
      {.steps_per_run = 2, .updater = UpdaterState::kAverage},
      {.kind = UpdateKind::kGradientOnly},
      {.kind = UpdateKind::kElastic, .moving_rate = 0.3F},
      {.kind = UpdateKind::kElasticMaster, .moving_rate = 0.3F},
  };
  TrainerParts parts = test::trainer_parts();
  parts.make_backend = []() -> Result<std::unique_ptr<Backend>> {
    return make_deferred_backend(make_cpu_backend(1));
  };
  for (const UpdateSpec& update : updates) {
    CAPTURE(static_cast<int>(update.kind), update.steps_per_run);
    TrainerCluster seen(scheduled_job(update), 2),
        unseen(scheduled_job(update), 2, {.parts = parts});
    for (int round = 0; round < 6; ++round) {
      seen.round();
      unseen.round();
    }
    CHECK(unseen.weights() == seen.weights());
  }
}

TEST_CASE("a worker with two shards trains a batch twice as large") {
  for (const UpdateKind kind : {UpdateKind::kFullDelta, UpdateKind::kGradientOnly}) {
    const auto contribution = [kind](int batch, std::uint64_t shards) {
      const std::string text = solver(batch, std::string(kMomentum) + "iter_size: 2 ");
      TrainerCluster cluster(scheduled_job({.kind = kind}, text), 1);
      for (std::uint64_t run = 0; run < 2; ++run) {
        TrainMessage order = cluster.order(0);
        order.first_step = run * shards;
        order.shards = shards;
        const RunReport report = cluster.train(0, order);
        CHECK(report.samples == 2 * 16);
        cluster.merge({0}, false);
      }
      return contribution_of(cluster, 0);
    };
    CHECK(test::relative_difference(contribution(8, 2), contribution(16, 1)) < 1e-4);
  }
}

}  // namespace speedo
