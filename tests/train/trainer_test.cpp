// What a trainer answers when something is wrong, and the job record.
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "support/skip.hpp"
#include "support/catch.hpp"

#include "failing_store.hpp"
#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::await;

JobSpec small_job(const std::string& extra = "base_lr: 0.1 lr_policy: \"fixed\"") {
  return {.solver_text = test::generated_solver(8, extra + " random_seed: 1", false), .base = {}};
}

Result<Digest> prepare(Trainer& trainer, const JobSpec& job,
                       std::shared_ptr<RecordStore> store) {
  return await<Result<Digest>>(
      [&](auto done) {
        trainer.prepare({WorkerId{0}, contribution_key(0, 0), job, std::move(store)}, done);
      });
}

Result<RunReport> run(Trainer& trainer, const TrainMessage& order) {
  return await<Result<RunReport>>([&](auto done) { trainer.run(order, done); });
}

}  // namespace

TEST_CASE("a job survives the store") {
  const JobSpec job{.solver_text = "base_lr: 1",
                    .base = "/some/where",
                    .stages = {{.kind = UpdateKind::kElasticMaster,
                                .steps_per_run = 3,
                                .moving_rate = 0.25F,
                                .updater = UpdaterState::kReset,
                                .factor = 2.0F,
                                .skip = 0.5F,
                                .in_rounds = true,
                                .base_lr = 0.0F,
                                .momentum = 0.5F,
                                .weight_decay = 0.125F},
                               {}},
                    .offset_shards = true,
                    .expected_workers = 5,
                    .deterministic = true,
                    .step_parts = 7,
                    .snapshot_workers = true};
  const auto copy = decode_job(encode(job));
  REQUIRE(copy);
  CHECK(copy->solver_text == job.solver_text);
  CHECK(copy->base == job.base);
  CHECK(copy->stages == job.stages);
  CHECK(copy->offset_shards == job.offset_shards);
  CHECK(copy->snapshot_workers == job.snapshot_workers);
  CHECK(copy->expected_workers == job.expected_workers);
  CHECK(copy->deterministic);
  CHECK(copy->step_parts == 7);
  CHECK_FALSE(decode_job(encode(small_job()))->deterministic);
}

TEST_CASE("a damaged job is refused") {
  JobSpec job = small_job();
  const std::string bytes = encode(job);
  CHECK_FALSE(decode_job(""));
  CHECK_FALSE(decode_job(bytes.substr(0, bytes.size() / 2)));
  CHECK_FALSE(decode_job("this is not a job"));
  job.stages[0].steps_per_run = 0;
  CHECK_FALSE(decode_job(encode(job)));
  job = small_job();
  job.expected_workers = 0;
  CHECK_FALSE(decode_job(encode(job)));
  for (const std::uint32_t parts : {0U, 1U << 20U}) {
    job = small_job();
    job.step_parts = parts;
    CHECK_FALSE(decode_job(encode(job)));
  }
  for (float UpdateSpec::* number :
       {&UpdateSpec::moving_rate, &UpdateSpec::factor, &UpdateSpec::skip}) {
    job = small_job();
    job.stages[0].*number = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(decode_job(encode(job)));
  }
  for (std::optional<float> UpdateSpec::* number :
       {&UpdateSpec::base_lr, &UpdateSpec::momentum, &UpdateSpec::weight_decay}) {
    job = small_job();
    job.stages[0].*number = std::numeric_limits<float>::infinity();
    CHECK_FALSE(decode_job(encode(job)));
  }
  job = small_job();
  job.stages[0].kind = static_cast<UpdateKind>(9);
  const auto unknown = decode_job(encode(job));
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::kMismatch);
}

TEST_CASE("a job without a seed gets one, which stays") {
  const JobSpec job{.solver_text = test::generated_solver(8, "base_lr: 1", false), .base = {}};
  const auto seeded = with_seed(job);
  REQUIRE(seeded);
  const auto solver = parse_solver(*seeded);
  REQUIRE(solver);
  CHECK(solver->random_seed() >= 0);
  CHECK(with_seed(*seeded)->solver_text == seeded->solver_text);
}

TEST_CASE("a run that was never prepared, and a job that is wrong, are errors") {
  const auto trainer = make_trainer(test::trainer_parts());
  const auto early = run(*trainer, TrainMessage{});
  REQUIRE_FALSE(early);
  CHECK(early.error().code == ErrorCode::kUnavailable);

  const auto store = make_memory_store();
  const auto text =
      prepare(*trainer, {.solver_text = "net_param { layer { oops", .base = {}}, store);
  REQUIRE_FALSE(text);
  CHECK(text.error().code == ErrorCode::kConfig);

  JobSpec steps = small_job();
  steps.stages[0].kind = UpdateKind::kGradientOnly;
  steps.stages[0].steps_per_run = 2;
  const auto wrong = prepare(*trainer, steps, store);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("--train 1") != std::string::npos);
}

TEST_CASE("a job that is not admitted is refused before its nets are built") {
  TrainerParts parts = test::trainer_parts();
  parts.admit = [](const JobSpec& job, const caffe::SolverParameter&, const SolverOptions&) {
    CHECK_FALSE(job.solver_text.empty());
    return Result<void>(Error{ErrorCode::kConfig, "too large for this test"});
  };
  const auto trainer = make_trainer(parts);
  const auto refused = prepare(*trainer, small_job(), make_memory_store());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "too large for this test");
}

TEST_CASE("a job's kernels are chosen before its backend is made") {
  TrainerParts parts = test::trainer_parts();
  std::vector<std::string> calls;
  parts.make_backend = [&calls, make = parts.make_backend] {
    calls.emplace_back("backend");
    return make();
  };
  parts.choose_kernels = [&calls](const JobSpec& job) -> Result<void> {
    calls.emplace_back(job.deterministic ? "deterministic" : "any");
    if (!job.deterministic) return {};
    return Error{ErrorCode::kUsage, "another process for this test"};
  };
  const auto trainer = make_trainer(parts);
  REQUIRE(prepare(*trainer, small_job(), make_memory_store()));
  JobSpec pinned = small_job();
  pinned.deterministic = true;
  const auto refused = prepare(*trainer, pinned, make_memory_store());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "another process for this test");
  CHECK(calls == std::vector<std::string>{"any", "backend", "deterministic"});
}

TEST_CASE("a run says what it did") {
  test::TrainerCluster cluster(small_job(), 1);
  const auto report = run(cluster.trainer(0), TrainMessage{.run = 40, .version = 1});
  REQUIRE(report);
  CHECK(report->run == RunId{40});
  CHECK(report->base == Version{1});
  CHECK(report->samples == 8);
  CHECK(std::isfinite(report->loss));
  CHECK(report->phases.data_us == 0);
  const auto contribution = cluster.store()->read(contribution_key(0, 0));
  REQUIRE(contribution);
  CHECK((*contribution)->info().version == 40);
  CHECK((*contribution)->info().model == cluster.model());
}

TEST_CASE("a loss that is not finite is reported, and nothing is contributed") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("it writes the weights in the store");
  test::TrainerCluster cluster(small_job(), 1);
  auto reader = cluster.store()->read(weights_key());
  REQUIRE(reader);
  const RecordInfo info = (*reader)->info();
  const std::vector<float> bad(info.element_count, NAN);
  REQUIRE(put(*cluster.store(), weights_key(), info, bad));
  const auto report = run(cluster.trainer(0), TrainMessage{.run = 1});
  REQUIRE(report);
  CHECK_FALSE(std::isfinite(report->loss));
  CHECK(report->fault.starts_with("the weights of layer '"));
  CHECK_FALSE(cluster.store()->read(contribution_key(0, 0)));
}

TEST_CASE("a worker that trains again overwrites nothing that an earlier incarnation has in memory "
          "without withdrawing it") {
  test::TrainerCluster::Options options;
  options.parts.shares_memory = true;
  test::TrainerCluster cluster(small_job(), 1, options);
  cluster.train(0);
  const auto first = cluster.store()->read(contribution_key(0, 0));
  REQUIRE(first);
  REQUIRE_FALSE((*first)->in_place(0).empty());
  REQUIRE((*first)->confirm(0));
  cluster.prepare(0);
  REQUIRE((*first)->confirm(0));  // It may still be merged.
  cluster.train(0);
  const auto late = (*first)->confirm(0);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == ErrorCode::kNotFound);
  CHECK(cluster.store()->read(contribution_key(0, 0)).value()->confirm(0));
}

TEST_CASE("weights of another net are refused") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("it writes the weights in the store");
  test::TrainerCluster cluster(small_job(), 1);
  RecordInfo info = cluster.store()->read(weights_key()).value()->info();
  info.model.low += 1;
  REQUIRE(put(*cluster.store(), weights_key(), info, std::vector<float>(info.element_count)));
  const auto report = run(cluster.trainer(0), TrainMessage{.run = 1});
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::kMismatch);
}

TEST_CASE("a cancelled run ends at once, even one that waits for weights") {
  test::TrainerCluster cluster(small_job(), 1);
  std::promise<Result<RunReport>> answer;
  cluster.trainer(0).run(TrainMessage{.run = 1, .version = 1000},
                         [&](Result<RunReport> report) { answer.set_value(std::move(report)); });
  cluster.trainer(0).cancel();
  const auto report = answer.get_future().get();
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ErrorCode::kUnavailable);
  CHECK(run(cluster.trainer(0), TrainMessage{.run = 2}));  // The trainer is as good as before.
}

TEST_CASE("weights whose chunks are gone are waited for without a rush") {
  const auto store = std::make_shared<test::FailingStore>(make_memory_store());
  test::TrainerCluster::Options options{.store = store};
  options.parts.shares_memory = false;
  test::TrainerCluster cluster(small_job(), 1, std::move(options));
  const std::uint64_t before = store->reads();
  store->lose_chunks(true);
  std::thread mender([&] {
    constexpr auto kLost = std::chrono::milliseconds(300);
    std::this_thread::sleep_for(kLost);
    store->lose_chunks(false);
  });
  const RunReport report = cluster.train(0);
  mender.join();
  CHECK(report.base == cluster.version());
  // One each 20 ms; some thousands without a pause.
  CHECK(store->reads() - before > 2);
  CHECK(store->reads() - before < 60);
}

TEST_CASE("what a run has put that nobody will hear of is erased, before anything else is done") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("nothing is put into the store");
  test::TrainerCluster cluster(small_job(), 1);
  REQUIRE(run(cluster.trainer(0), TrainMessage{.run = 1}));
  REQUIRE(cluster.store()->read(contribution_key(0, 0)));
  cluster.trainer(0).withdraw();
  cluster.prepare(0);
  CHECK_FALSE(cluster.store()->read(contribution_key(0, 0)));
}

TEST_CASE("an order that is not for the job is refused") {
  test::TrainerCluster cluster(small_job(), 1);
  const float infinite = std::numeric_limits<float>::infinity();
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  const TrainMessage bad[] = {{.run = 1, .stage = 1},
                              {.run = 1, .shards = 0},
                              {.run = 1, .shards = kShardsPerRunMax + 1},
                              {.run = 1, .lr_scale_bits = bits(infinite)},
                              {.run = 1, .lr_scale_bits = bits(-1.0F)}};
  for (const TrainMessage& order : bad) {
    const auto report = run(cluster.trainer(0), order);
    REQUIRE_FALSE(report);
    CHECK(report.error().code == ErrorCode::kMismatch);
  }
  CHECK(run(cluster.trainer(0), TrainMessage{.run = 2}));
}

TEST_CASE("an elastic worker that diverged begins again at the centre") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("it writes the weights in the store");
  const UpdateKind kind = GENERATE(UpdateKind::kElastic, UpdateKind::kElasticMaster);
  JobSpec job = small_job();
  job.stages[0] = {.kind = kind, .moving_rate = 0.5F};
  test::TrainerCluster cluster(job, 1);
  auto reader = cluster.store()->read(weights_key());
  REQUIRE(reader);
  const RecordInfo info = (*reader)->info();
  std::vector<float> good(info.element_count);
  REQUIRE(get(*cluster.store(), weights_key(), info.model, good));
  REQUIRE(put(*cluster.store(), weights_key(), info, std::vector<float>(info.element_count, NAN)));
  const auto bad = run(cluster.trainer(0), TrainMessage{.run = 1});
  REQUIRE(bad);
  CHECK_FALSE(std::isfinite(bad->loss));
  CHECK_FALSE(cluster.store()->read(contribution_key(0, 0)));
  REQUIRE(put(*cluster.store(), weights_key(), info, good));
  const auto next = run(cluster.trainer(0), TrainMessage{.run = 2});
  REQUIRE(next);
  CHECK(std::isfinite(next->loss));
}

TEST_CASE("with offset shards worker k of n begins at k/n of the data and counts its own runs") {
  const auto losses = [](WorkerId worker, bool offset, std::uint64_t shard) {
    JobSpec job = small_job();
    test::TrainerCluster cluster(job, 1);
    job.offset_shards = offset;
    job.expected_workers = 4;
    const auto trainer = make_trainer(test::trainer_parts());
    REQUIRE(await<Result<Digest>>(
        [&](auto done) {
          trainer->prepare({worker, contribution_key(0, 0), job, cluster.store()}, done);
        }));
    std::vector<float> found;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto report = run(*trainer, TrainMessage{.run = i, .first_step = shard + i});
      REQUIRE(report);
      found.push_back(report->loss);
    }
    // The store has lost what the last of them contributed.
    const auto again = run(*trainer, TrainMessage{.run = 3, .first_step = shard + 2});
    REQUIRE(again);
    CHECK(again->loss == found.back());
    return found;
  };
  // 512 records in batches of 8: a quarter of the data are 16 batches. The orders' shard is
  // unused.
  CHECK(losses(WorkerId{1}, true, 99) == losses(WorkerId{0}, false, 16));
  CHECK(losses(WorkerId{3}, true, 0) == losses(WorkerId{0}, false, 48));
  CHECK(losses(WorkerId{4}, true, 5) == losses(WorkerId{0}, false, 0));  // A later incarnation.
}

// Two workers, of which one outlives a master that the other does not.
TEST_CASE("a worker keeps its place with the same master, its number says it with another") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("it writes the weights in the store");
  const auto loss_at = [](std::uint64_t batch) {
    test::TrainerCluster other(small_job(), 1);
    const auto report = run(other.trainer(0), TrainMessage{.run = 9, .first_step = batch});
    REQUIRE(report);
    return report->loss;
  };
  JobSpec job = small_job();
  test::TrainerCluster cluster(job, 1);
  job.offset_shards = true;
  job.expected_workers = 2;
  auto reader = cluster.store()->read(weights_key());
  REQUIRE(reader);
  const RecordInfo info = (*reader)->info();
  std::vector<float> weights(info.element_count);
  REQUIRE(get(*cluster.store(), weights_key(), info.model, weights));
  const auto trainer = make_trainer(test::trainer_parts());
  const auto store = std::dynamic_pointer_cast<ParameterStore>(cluster.store());
  REQUIRE(store);
  const auto joined = [&](std::uint64_t worker, std::uint64_t term) {
    store->fence(term);
    REQUIRE(put(*cluster.store(), weights_key(), info, weights));
    REQUIRE(await<Result<Digest>>([&](auto done) {
      trainer->prepare({.worker = WorkerId{worker},
                        .contribution = contribution_key(term, worker),
                        .job = job,
                        .store = cluster.store(),
                        .term = term},
                       done);
    }));
    const auto report = run(*trainer, TrainMessage{.run = worker, .first_step = worker});
    INFO((report ? "" : report.error().message));
    REQUIRE(report);
    return report->loss;
  };
  // 512 records in batches of 8: a half of the data are 32 batches.
  CHECK(joined(1, 7) == loss_at(32));
  CHECK(joined(2, 7) == loss_at(33));
  CHECK(joined(4, 8) == loss_at(0));
  CHECK(joined(5, 8) == loss_at(1));
  CHECK(joined(6, 9) == loss_at(2));
}

}  // namespace speedo
