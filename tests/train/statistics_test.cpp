// BatchNorm's running statistics, which forward passes change, reach the master with every kind of
// update.
#include "support/catch.hpp"

#include "support/kernels.hpp"
#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

// The generated net with a BatchNorm and a Scale behind its first layer.
std::string statistics_solver(const std::string& extra = "") {
  std::string text = test::generated_solver(
      16,
      "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 max_iter: 100 display: 0 random_seed: 5 " +
          extra,
      false);
  const std::string before = R"(layer { name: "relu")";
  text.insert(text.find(before),
              R"(layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1"
                         batch_norm_param { moving_average_fraction: 0.9 } }
                 layer { name: "scale" type: "Scale" bottom: "ip1" top: "ip1"
                         scale_param { bias_term: true } })");
  return text;
}

// What was seen so far: means, variances, weight.
std::vector<float> statistics(const ParameterLayout& layout, const std::vector<float>& weights) {
  std::vector<float> values;
  for (const ParameterSlot& slot : layout.slots()) {
    if (!slot.is_statistic) continue;
    const auto begin = weights.begin() + slot.offset;
    values.insert(values.end(), begin, begin + slot.count());
  }
  REQUIRE(values.size() == 2 * 24 + 1);
  return values;
}

std::vector<float> statistics(TrainerCluster& cluster) {
  return statistics(cluster.layout(), cluster.weights());
}

void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-5).margin(1e-5));
}

TEST_CASE("with one worker the statistics are those of local training") {
  const UpdateSpec spec = GENERATE(values<UpdateSpec>({
      {.kind = UpdateKind::kFullDelta},
      {.kind = UpdateKind::kFullDelta, .steps_per_run = 3},
      {.kind = UpdateKind::kFullDelta, .updater = UpdaterState::kAverage},
      {.kind = UpdateKind::kGradientOnly},
  }));
  const std::string extra = GENERATE("", "iter_size: 2", "clip_gradients: 0.1 weight_decay: 0.01");
  CAPTURE(static_cast<int>(spec.kind), spec.steps_per_run, extra);
  TrainerCluster cluster({.solver_text = statistics_solver(extra), .base = {}, .stages = {spec}},
                         1);
  for (int round = 0; round < 4; ++round) cluster.round();
  const int iterations = 4 * static_cast<int>(spec.steps_per_run);
  const auto alone = test::train_alone(statistics_solver(extra), iterations);
  check_close(statistics(cluster), statistics(cluster.layout(), alone));
  CHECK(statistics(cluster).back() > 2.0F);  // the weight: far from the start's 0
}

// Each pass adds 1 to the weight after taking a tenth from it.
TEST_CASE("what several shards make of the statistics is contributed as the size of one's") {
  const std::uint32_t steps = GENERATE(1U, 3U);
  const std::uint64_t shards = 2;
  CAPTURE(steps);
  const UpdateSpec spec{.kind = UpdateKind::kFullDelta, .steps_per_run = steps};
  TrainerCluster cluster({.solver_text = statistics_solver(), .base = {}, .stages = {spec}}, 1);
  TrainMessage order = cluster.order(0);
  order.shards = shards;
  cluster.train(0, order);
  cluster.merge({0}, false);
  float whole = 0.0F;
  for (std::uint64_t pass = 0; pass < shards * steps; ++pass) whole = 0.9F * whole + 1.0F;
  CHECK(statistics(cluster).back() == Approx(whole / static_cast<float>(shards)));
}

// The pass that looks whether the weights have diverged.
TEST_CASE("a snapshot has the merged statistics, though the test net's passes change them") {
  std::string text = statistics_solver("test_iter: 1 test_interval: 1 ");
  const std::string options = "batch_norm_param { ";
  text.insert(text.find(options) + options.size(), "use_global_stats: false ");
  const auto nets = test::value_of(JobNets::create(
      test::trainer_parts(), {.job = {.solver_text = text, .base = {}, .stages = {{}}},
                              .with_tests = true,
                              .initial_weights = {},
                              .initial_state = {}}));
  const auto copy = std::make_shared<const Merger::Copy>(Merger::Copy{
      .version = {4}, .weights = nets->take_start().weights, .histories = {}, .state = {}});
  float weight = -1.0F;
  REQUIRE(test::await<Result<void>>([&](auto done) {
    nets->snapshot(
        4, copy,
        [&](std::int64_t, const caffe::NetParameter& net, caffe::SolverState&, const std::string&) {
          for (const caffe::LayerParameter& layer : net.layer()) {
            if (layer.name() == "bn") weight = layer.blobs(2).data(0);
          }
          return Result<void>();
        },
        done);
  }));
  CHECK(weight == 0.0F);
}

// The batches of one of several workers that take turns.
class TurnFeeds : public FeedFactory {
 public:
  TurnFeeds(std::uint64_t worker, std::uint64_t workers) : worker_(worker), workers_(workers) {}

  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions&) override {
    return std::unique_ptr<BatchFeed>(new Feed(layer.data_param().batch_size(), worker_, workers_));
  }

 private:
  class Feed : public test::GeneratedFeed {
   public:
    Feed(std::int64_t batch_size, std::uint64_t worker, std::uint64_t workers)
        : GeneratedFeed(batch_size, 0.0), worker_(worker), workers_(workers) {}
    Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override {
      return GeneratedFeed::read(batch * workers_ + worker_);
    }

   private:
    std::uint64_t worker_, workers_;
  };

  std::uint64_t worker_, workers_;
};

// Elastic averaging without a cluster: a solver for each worker, on the batches that the worker's
// runs have, and the rule's formulas: e = rate (x - W), x -= e, and W += all workers' e.
class ElasticByHand {
 public:
  ElasticByHand(const std::string& solver_text, std::size_t workers, float rate) : rate_(rate) {
    const auto message = test::value_of(parse_solver({.solver_text = solver_text, .base = {}}));
    for (std::size_t i = 0; i < workers; ++i) {
      feeds_.push_back(std::make_unique<TurnFeeds>(i, workers));
      solvers_.push_back(test::value_of(Solver::create(
          message, {.backend = backend_.get(), .feeds = feeds_.back().get(), .base = {}}, {})));
    }
    centre_ = weights_of(*solvers_.front());
  }

  void round() {
    std::vector<float> sum(centre_.size(), 0.0F);
    for (const auto& solver : solvers_) {
      REQUIRE(solver->step(1).has_value());
      std::vector<float> own = weights_of(*solver);
      for (std::size_t i = 0; i < own.size(); ++i) {
        const float elastic = rate_ * (own[i] - centre_[i]);
        sum[i] += elastic;
        own[i] -= elastic;
      }
      backend_->device().upload(solver->net().weights().data(), own);
    }
    for (std::size_t i = 0; i < sum.size(); ++i) centre_[i] += sum[i];
  }

  const std::vector<float>& centre() const { return centre_; }

 private:
  std::vector<float> weights_of(Solver& solver) const {
    const Arena& arena = solver.net().weights();
    std::vector<float> weights(static_cast<std::size_t>(arena.size()));
    backend_->device().download(weights, arena.data());
    return weights;
  }

  const float rate_;
  std::unique_ptr<Backend> backend_ = test::make_backend(1);
  std::vector<std::unique_ptr<TurnFeeds>> feeds_;
  std::vector<std::unique_ptr<Solver>> solvers_;
  std::vector<float> centre_;
};

TEST_CASE("elastic averaging moves the centre's statistics with its weights") {
  const UpdateKind kind = GENERATE(UpdateKind::kElastic, UpdateKind::kElasticMaster);
  const std::size_t workers = GENERATE(1, 2);
  CAPTURE(static_cast<int>(kind), workers);
  constexpr float kRate = 0.5F;
  TrainerCluster cluster({.solver_text = statistics_solver(),
                          .base = {},
                          .stages = {{.kind = kind, .moving_rate = kRate}}},
                         workers);
  ElasticByHand by_hand(statistics_solver(), workers, kRate);
  const auto start = by_hand.centre();
  for (int round = 0; round < 4; ++round) {
    cluster.round();
    by_hand.round();
    check_close(statistics(cluster), statistics(cluster.layout(), by_hand.centre()));
    check_close(cluster.weights(), by_hand.centre());
  }
  // Every statistic has moved: of the generated data no mean and no variance stays 0.
  const auto before = statistics(cluster.layout(), start), after = statistics(cluster);
  for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] != before[i]);
}

TEST_CASE("contributions that are averaged give the mean statistics, one after another all") {
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const JobSpec job{.solver_text = statistics_solver(), .base = {}, .stages = {{.kind = kind}}};
  TrainerCluster mean(job, 2), each(job, 2);
  mean.train_all();
  mean.merge({0, 1}, true);
  CHECK(statistics(mean).back() == Approx(1.0));
  each.train(0);
  each.train(1);
  each.merge({0}, false);
  each.merge({1}, false);
  CHECK(statistics(each).back() == Approx(2.0));
  const auto means = statistics(mean), sums = statistics(each);
  for (std::size_t i = 0; i < means.size(); ++i) {
    CHECK(2.0F * means[i] == Approx(sums[i]).epsilon(1e-5).margin(1e-6));
  }
}

// In the first round forward passes are those of the same weights, whatever comes of the gradients.
TEST_CASE("statistics arrive whole, whatever a codec or --skip leaves out of the rest") {
  const UpdateKind kind =
      GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly, UpdateKind::kElastic);
  const std::uint64_t workers = GENERATE(std::uint64_t{1}, std::uint64_t{2});
  const auto after_a_round = [&](const UpdateSpec& update) {
    TrainerCluster cluster({.solver_text = statistics_solver(), .base = {}, .stages = {update}},
                           workers);
    cluster.round();
    return statistics(cluster);
  };
  UpdateSpec update{.kind = kind};
  if (kind == UpdateKind::kElastic) update.moving_rate = 0.4F;
  const std::vector<float> whole = after_a_round(update);
  CAPTURE(static_cast<int>(kind), workers);
  for (const std::string codec : {"bf16", "fp16", "int8", "onebit", "threshold:100", "topk:1"}) {
    update.codec = test::value_of(parse_codec(codec));
    for (const bool feeds_back : {true, false}) {
      update.error_feedback = feeds_back;
      CAPTURE(codec, feeds_back);
      CHECK(after_a_round(update) == whole);
    }
  }
  if (kind != UpdateKind::kFullDelta) return;
  update = {.kind = kind};
  update.skip = 100.0F;
  CHECK(after_a_round(update) == whole);
}

}  // namespace
}  // namespace speedo
