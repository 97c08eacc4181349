// A job that goes on from a checkpoint is the job that was never interrupted, bit for bit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <speedo/train/checkpoint.hpp>

#include "support/catch.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

constexpr int kRounds = 7;

std::string resumed_solver(bool dropout = true) {
  return test::generated_solver(8,
                                "base_lr: 0.1 lr_policy: \"inv\" gamma: 0.01 power: 0.75 "
                                "momentum: 0.9 weight_decay: 0.002 random_seed: 5",
                                dropout);
}

JobSpec job_of(const std::vector<UpdateSpec>& stages) {
  return {.solver_text = resumed_solver(), .base = {}, .stages = stages};
}

void rounds(TrainerCluster& cluster, int count) {
  for (int round = 0; round < count; ++round) cluster.round();
}

// Two rounds of each of two stages, again and again: those from `first` to before `end`.
void rounds_in_turn(TrainerCluster& cluster, int first, int end) {
  for (int round = first; round < end; ++round) {
    if (round == first || round % 2 == 0) cluster.enter_stage(round / 2 % 2);
    cluster.round();
  }
}

void require_same(const Merger::Copy& a, const Merger::Copy& b) {
  REQUIRE(a.weights == b.weights);
  REQUIRE(a.histories == b.histories);
  REQUIRE(a.state == b.state);
}

// Workers 1 and 2 take seats 0 and 1 with the first of two rounds.
void two_rounds_from_seats(TrainerCluster& cluster) {
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t worker : {1, 2}) {
      TrainMessage order = cluster.order(worker);
      order.seat = round == 0 ? worker - 1 : kNoSeat;
      cluster.train(worker, order);
    }
    cluster.merge({1, 2}, true);
  }
}

}  // namespace

TEST_CASE("a job resumed at any merge is the uninterrupted one, bit for bit") {
  const UpdateSpec update =
      GENERATE(UpdateSpec{.kind = UpdateKind::kGradientOnly},
               UpdateSpec{.steps_per_run = 2, .updater = UpdaterState::kAverage});
  const JobSpec job = job_of({update});
  TrainerCluster whole(job, 3);
  rounds(whole, kRounds);
  for (int at = 0; at <= kRounds; ++at) {
    CAPTURE(at);
    const auto store = make_memory_store();
    {
      TrainerCluster before(job, 3, {.store = store});
      rounds(before, at);
    }
    const Digest model = whole.model();
    const auto checkpoint =
        test::value_of(read_checkpoint(*store, whole.layout(), wants_histories(job.stages)));
    REQUIRE(checkpoint.session.substr(0, 1) == std::to_string(at));
    TrainerCluster after(job, 3, {.store = store, .from = &checkpoint});
    REQUIRE(after.model() == model);
    rounds(after, kRounds - at);
    require_same(after.copy(), whole.copy());
  }
}

TEST_CASE("with its workers' states a job is the uninterrupted one, bit for bit, at any merge") {
  const UpdateSpec coded{.codec = {.kind = CodecKind::kBf16}};
  const UpdateSpec update = GENERATE_COPY(
      UpdateSpec{}, UpdateSpec{.steps_per_run = 2}, coded,
      UpdateSpec{.kind = UpdateKind::kElastic, .steps_per_run = 2, .moving_rate = 0.3F},
      UpdateSpec{.kind = UpdateKind::kElasticMaster, .moving_rate = 0.25F});
  const std::string type = GENERATE("SGD", "Adam");
  JobSpec job = job_of({update});
  job.solver_text += " type: \"" + type + "\"" + (type == "Adam" ? " momentum2: 0.99" : "");
  CAPTURE(static_cast<int>(update.kind), update.steps_per_run, type);
  TrainerCluster whole(job, 3);
  rounds(whole, kRounds);
  for (int at = 1; at <= kRounds; at += 2) {
    CAPTURE(at);
    const auto store = make_memory_store();
    SavedStates states;
    {
      TrainerCluster before(job, 3, {.store = store});
      rounds(before, at);
      states = before.save_states();
      rounds(before, 2);  // Nobody who gave its state has become another.
      if (at + 2 == kRounds) require_same(before.copy(), whole.copy());
    }
    TrainerCluster copied(job, 3);
    rounds(copied, at);
    const Merger::Copy now = copied.copy();
    const Checkpoint start{now.version, now.weights, now.histories, now.state};
    TrainerCluster after(job, 3, {.from = &start});
    after.deal(states, 3);
    rounds(after, kRounds - at);
    REQUIRE(after.weights() == whole.weights());
    REQUIRE(after.copy().state == whole.copy().state);
  }
}

TEST_CASE("states of a moment with runs that are not merged are those before these runs") {
  const UpdateSpec update = GENERATE(
      UpdateSpec{}, UpdateSpec{.steps_per_run = 2}, UpdateSpec{.codec = {.kind = CodecKind::kTopK}},
      UpdateSpec{.kind = UpdateKind::kElastic, .steps_per_run = 2, .moving_rate = 0.3F},
      UpdateSpec{.kind = UpdateKind::kElasticMaster, .moving_rate = 0.25F});
  JobSpec job = job_of({update});
  job.solver_text += " type: \"Adam\" momentum2: 0.99";
  job.snapshot_workers = true;
  job.offset_shards = GENERATE(false, true);
  job.expected_workers = 2;
  CAPTURE(static_cast<int>(update.kind), update.steps_per_run, job.offset_shards);
  TrainerCluster whole(job, 2);
  rounds(whole, 5);
  for (const int at : {0, 3}) {
    CAPTURE(at);
    TrainerCluster before(job, 2);
    rounds(before, at);
    const Merger::Copy now = before.copy();
    before.train_all();
    const SavedStates states = before.save_states(true);
    before.merge({0, 1}, true);
    const Checkpoint start{now.version, now.weights, now.histories, now.state};
    TrainerCluster after(job, 2, {.from = &start});
    after.deal(states, 2);
    rounds(after, 5 - at);
    REQUIRE(after.weights() == whole.weights());
    // Nobody who gave its state has become another.
    rounds(before, 4 - at);
    REQUIRE(before.weights() == whole.weights());
  }
}

TEST_CASE("a state of a stage without use for a worker's histories has them for the next stage") {
  const UpdateSpec full{.steps_per_run = 2}, gradients{.kind = UpdateKind::kGradientOnly};
  const UpdateSpec averaged{.steps_per_run = 2, .updater = UpdaterState::kAverage};
  const UpdateSpec reset{.steps_per_run = 2, .updater = UpdaterState::kReset};
  const auto [first, second] =
      GENERATE_COPY(std::pair(full, gradients), std::pair(gradients, full),
                    std::pair(averaged, full), std::pair(reset, full));
  JobSpec job = job_of({first, second});
  job.solver_text += " type: \"Adam\" momentum2: 0.99";
  job.snapshot_workers = true;
  const bool has_open_runs = GENERATE(false, true);
  CAPTURE(static_cast<int>(first.kind), static_cast<int>(first.updater), has_open_runs);
  TrainerCluster whole(job, 2);
  rounds_in_turn(whole, 0, 9);
  for (int at = 1; at < 9; ++at) {
    CAPTURE(at);
    TrainerCluster before(job, 2);
    rounds_in_turn(before, 0, at);
    if (has_open_runs && at % 2 == 0) before.enter_stage(at / 2 % 2);
    const Merger::Copy now = before.copy();
    if (has_open_runs) before.train_all();
    const SavedStates states = before.save_states(has_open_runs);
    const Checkpoint start{now.version, now.weights, now.histories, now.state};
    TrainerCluster after(job, 2, {.from = &start});
    after.deal(states, 2);
    rounds_in_turn(after, at, 9);
    REQUIRE(after.weights() == whole.weights());
  }
}

TEST_CASE("a state without histories for a later stage goes on in its own, as another version's") {
  UpdateSpec gradients{.kind = UpdateKind::kGradientOnly};
  gradients.codec.kind = CodecKind::kOneBit;
  JobSpec job = job_of({gradients, {.steps_per_run = 2}});
  job.snapshot_workers = true;
  TrainerCluster whole(job, 2);
  rounds_in_turn(whole, 0, 2);
  TrainerCluster before(job, 2);
  rounds_in_turn(before, 0, 1);
  SavedStates states = before.save_states();
  states.read = [read = states.read](std::size_t k) {
    auto state = read(k);
    const auto histories = static_cast<std::ptrdiff_t>(state->head.histories());
    CHECK(histories > 0);
    CHECK(state->head.residual() > 0);
    const auto first = state->values.begin() + static_cast<std::ptrdiff_t>(state->head.weights());
    state->values.erase(first, first + histories);
    state->head.set_histories(0);
    return state;
  };
  const Merger::Copy now = before.copy();
  const Checkpoint start{now.version, now.weights, now.histories, now.state};
  TrainerCluster after(job, 2, {.from = &start});
  after.deal(states, 2);
  rounds_in_turn(after, 1, 2);
  CHECK(after.weights() == whole.weights());
}

TEST_CASE("a worker of another number goes on in the data where its state's worker was") {
  JobSpec job = job_of({{}});
  job.offset_shards = true;
  job.expected_workers = 2;
  const bool says_where = GENERATE(true, false);
  TrainerCluster whole(job, 2);
  rounds(whole, 5);
  TrainerCluster before(job, 2);
  rounds(before, 3);
  SavedStates states = before.save_states();
  if (!says_where) {
    states.read = [read = states.read](std::size_t k) {
      auto state = read(k);
      state->head.clear_data_part();
      state->head.clear_data_parts();
      return state;
    };
  }
  const Merger::Copy now = before.copy();
  const Checkpoint start{now.version, now.weights, now.histories, now.state};
  // Seat 0 goes to worker 1, which would begin in the middle, and 1 to worker 2, which would not.
  TrainerCluster after(job, 3, {.from = &start});
  after.deal(states, 2);
  two_rounds_from_seats(after);
  CHECK(after.weights() == whole.weights());
  // As one whose connection broke it keeps its place.
  after.prepare(1);
  after.prepare(2);
  rounds(whole, 1);
  for (const std::size_t worker : {1, 2}) after.train(worker);
  after.merge({1, 2}, true);
  CHECK(after.weights() == whole.weights());
}

TEST_CASE("who finds its state lost goes on in the data that nobody else has") {
  JobSpec job = job_of({{.kind = UpdateKind::kGradientOnly}});
  job.offset_shards = true;
  job.expected_workers = 2;
  const std::size_t lost = GENERATE(0, 1);
  TrainerCluster whole(job, 2);
  rounds(whole, 5);
  TrainerCluster before(job, 2);
  rounds(before, 3);
  SavedStates states = before.save_states();
  states.read = [read = states.read, lost](std::size_t k) -> Result<StateOfWorker> {
    if (k == lost) return Error{ErrorCode::kCorrupt, "it is damaged"};
    return read(k);
  };
  const Merger::Copy now = before.copy();
  const Checkpoint start{now.version, now.weights, now.histories, now.state};
  TrainerCluster after(job, 3, {.from = &start});
  after.deal(states, 2);
  two_rounds_from_seats(after);
  CHECK(after.weights() == whole.weights());
}

TEST_CASE("a net that is made anew for a state's place is progress") {
  JobSpec job = job_of({{}});
  job.offset_shards = true;
  job.expected_workers = 2;
  TrainerCluster before(job, 2);
  rounds(before, 1);
  const SavedStates states = before.save_states();
  const Merger::Copy now = before.copy();
  const Checkpoint start{now.version, now.weights, now.histories, now.state};
  Trainer* trainer = nullptr;
  bool counted = false;
  TrainerParts parts = test::trainer_parts();
  parts.make_feeds = [&, make = parts.make_feeds] {
    if (trainer != nullptr) {
      const std::uint64_t progress = trainer->progress();
      counted = trainer->progress() > progress;
    }
    return make();
  };
  TrainerCluster after(job, 2, {.from = &start, .parts = parts});
  after.deal(states, 2);
  trainer = &after.trainer(1);
  TrainMessage order = after.order(1);
  order.seat = 0;  // of worker 0
  after.train(1, order);
  CHECK(counted);
  const std::uint64_t progress = trainer->progress();
  CHECK(trainer->progress() == progress);
}

TEST_CASE("workers' states go on with another codec, but for what the one before had left out") {
  const UpdateSpec plain{}, coded{.codec = {.kind = CodecKind::kTopK}};
  for (const auto& [first, second] : {std::pair(plain, coded), std::pair(coded, plain)}) {
    CAPTURE(to_string(first.codec));
    TrainerCluster before(job_of({first}), 2);
    rounds(before, 3);
    const SavedStates states = before.save_states();
    const Merger::Copy now = before.copy();
    const Checkpoint start{now.version, now.weights, now.histories, now.state};
    TrainerCluster with(job_of({second}), 2, {.from = &start});
    with.deal(states, 2);
    rounds(with, 1);
    TrainerCluster without(job_of({second}), 2, {.from = &start});
    rounds(without, 1);
    CHECK(with.weights() != without.weights());
  }
}

TEST_CASE("a job that goes on without its workers' states is another one") {
  const UpdateSpec update =
      GENERATE(UpdateSpec{}, UpdateSpec{.kind = UpdateKind::kElastic, .moving_rate = 0.3F});
  const JobSpec job = job_of({update});
  TrainerCluster whole(job, 2);
  rounds(whole, 3);
  const Merger::Copy middle = whole.copy();
  rounds(whole, 3);
  const Checkpoint start{middle.version, middle.weights, middle.histories, middle.state};
  TrainerCluster after(job, 2, {.from = &start});
  rounds(after, 3);
  CHECK(after.weights() != whole.weights());
}

TEST_CASE("on one worker more or less a job goes on from means, or begins at the centre") {
  const JobSpec job =
      job_of({{.kind = UpdateKind::kElastic, .steps_per_run = 2, .moving_rate = 0.3F}});
  TrainerCluster before(job, 3);
  rounds(before, 4);
  const SavedStates states = before.save_states();
  const Merger::Copy now = before.copy();
  const Checkpoint start{now.version, now.weights, now.histories, now.state};
  for (const std::uint64_t workers : {2, 4}) {
    TrainerCluster after(job, workers, {.from = &start});
    after.deal(states, seats_for(states.count, workers));
    rounds(after, 3);
    CHECK(std::ranges::all_of(after.losses(), [](float loss) { return std::isfinite(loss); }));
  }
}

TEST_CASE("a seat without a state, or with a bad or another solver's, leaves its worker as it is") {
  const JobSpec job = job_of({{}});
  TrainerCluster plain(job, 1);
  rounds(plain, 2);
  JobSpec other = job;
  other.solver_text += " type: \"Adam\"";
  enum class Seat { kEmpty, kOfAnother, kNotFinite };
  for (const Seat seat : {Seat::kEmpty, Seat::kOfAnother, Seat::kNotFinite}) {
    const auto store = make_memory_store();
    TrainerCluster cluster(job, 1, {.store = store});
    if (seat != Seat::kEmpty) {
      TrainerCluster before(seat == Seat::kOfAnother ? other : job, 1);
      rounds(before, 1);
      auto state = test::value_of(before.save_states().read(0));
      if (seat == Seat::kNotFinite) state.values[0] = std::numeric_limits<float>::quiet_NaN();
      REQUIRE(put_state(*store, seat_key(0, 0), state));
    }
    TrainMessage order = cluster.order(0);
    order.seat = 0;
    cluster.train(0, order);
    cluster.merge({0}, false);
    rounds(cluster, 1);
    CHECK(cluster.weights() == plain.weights());
  }
}

TEST_CASE("checkpoints are written every publish interval, and of the merge that they say") {
  const JobSpec job = job_of({{.kind = UpdateKind::kGradientOnly}});
  TrainerCluster cluster(job, 2, {.publish_interval = 3});
  std::vector<Merger::Copy> copies{cluster.copy()};
  for (std::size_t round = 1; round <= 7; ++round) {
    cluster.round();
    copies.push_back(cluster.copy());
    const Checkpoint checkpoint = cluster.checkpoint();
    const Merger::Copy& expected = copies[round / 3 * 3];
    REQUIRE(checkpoint.version == expected.version);
    REQUIRE(checkpoint.weights == expected.weights);
    REQUIRE(checkpoint.histories == expected.histories);
    REQUIRE(checkpoint.session == expected.state);
  }
}

TEST_CASE("the last merge is in the store when a master ends") {
  const JobSpec job = job_of({{.kind = UpdateKind::kGradientOnly}});
  const auto store = make_memory_store();
  Merger::Copy last;
  ParameterLayout layout;
  {
    TrainerCluster cluster(job, 2, {.store = store, .publish_interval = 100});
    rounds(cluster, 3);
    last = cluster.copy();
    layout = cluster.layout();
  }
  const auto checkpoint = test::value_of(read_checkpoint(*store, layout, true));
  CHECK(checkpoint.version == last.version);
  CHECK(checkpoint.histories == last.histories);
}

TEST_CASE("a .solverstate gives the master its histories back") {
  const UpdateSpec update =
      GENERATE(UpdateSpec{.kind = UpdateKind::kGradientOnly},
               UpdateSpec{.updater = UpdaterState::kAverage});
  const JobSpec job = job_of({update});
  TrainerCluster whole(job, 2);
  rounds(whole, 4);
  const Merger::Copy middle = whole.copy();
  rounds(whole, 3);

  auto state = std::make_shared<caffe::SolverState>();
  auto model = std::make_shared<caffe::NetParameter>();
  std::string session;
  {
    const auto nets = test::value_of(JobNets::create(
        test::trainer_parts(),
        {.job = job, .with_tests = false, .initial_weights = {}, .initial_state = {}}));
    const auto copy = std::make_shared<const Merger::Copy>(middle);
    REQUIRE(test::await<Result<void>>([&](auto done) {
      nets->snapshot(
          4, copy,
          [&](std::int64_t, const caffe::NetParameter& net, caffe::SolverState& histories,
              const std::string& saved) {
            *model = net;
            *state = histories;
            session = saved;
            return Result<void>();
          },
          done);
    }));
  }
  CHECK(session == middle.state);
  const auto nets = test::value_of(JobNets::create(
      test::trainer_parts(),
      {.job = job, .with_tests = false, .initial_weights = model, .initial_state = state}));
  Checkpoint start = nets->take_start();
  CHECK(start.weights == middle.weights);
  CHECK(start.histories == middle.histories);
  start.session = session;
  TrainerCluster resumed(job, 2, {.from = &start});
  rounds(resumed, 3);
  require_same(resumed.copy(), whole.copy());
}

TEST_CASE("a job whose master keeps no histories takes none, and its snapshots have zeros") {
  const JobSpec job = job_of({{}});
  auto state = std::make_shared<caffe::SolverState>();
  state->set_iter(3);
  const auto nets = test::value_of(JobNets::create(
      test::trainer_parts(),
      {.job = job, .with_tests = false, .initial_weights = {}, .initial_state = state}));
  CHECK(nets->take_start().histories.empty());
}

TEST_CASE("weights that give no finite test loss are no snapshot") {
  JobSpec job = job_of({{}});
  job.solver_text += "\ntest_iter: 1 test_interval: 1";
  const auto nets = test::value_of(JobNets::create(
      test::trainer_parts(),
      {.job = job, .with_tests = true, .initial_weights = {}, .initial_state = {}}));
  int written = 0;
  const auto snapshot = [&](std::vector<float> weights) {
    const auto copy = std::make_shared<const Merger::Copy>(
        Merger::Copy{.version = {4}, .weights = std::move(weights), .histories = {}, .state = {}});
    return test::await<Result<void>>([&](auto done) {
      nets->snapshot(
          4, copy,
          [&](std::int64_t, const caffe::NetParameter&, caffe::SolverState&, const std::string&) {
            ++written;
            return Result<void>();
          },
          done);
    });
  };
  const std::vector<float> weights = nets->take_start().weights;
  REQUIRE(snapshot(weights));
  const auto refused = snapshot(std::vector<float>(weights.size(), 1e30F));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kNotFinite);
  CHECK(refused.error().message.find("iteration 4") != std::string::npos);
  CHECK(written == 1);
}

TEST_CASE("the state of another net is refused") {
  const JobSpec job = job_of({{.kind = UpdateKind::kGradientOnly}});
  auto state = std::make_shared<caffe::SolverState>();
  state->set_iter(3);
  state->add_history()->add_data(1.0F);
  const auto nets = JobNets::create(
      test::trainer_parts(),
      {.job = job, .with_tests = false, .initial_weights = {}, .initial_state = state});
  REQUIRE_FALSE(nets);
  CHECK(nets.error().code == ErrorCode::kMismatch);
}

TEST_CASE("stages go on with the weights, histories and rates of their own") {
  const UpdateSpec gradients{.kind = UpdateKind::kGradientOnly};
  const UpdateSpec slow{.kind = UpdateKind::kGradientOnly, .base_lr = 0.0F, .momentum = 0.0F};
  const UpdateSpec elastic{.kind = UpdateKind::kElastic, .moving_rate = 0.0F};
  const UpdateSpec averaged{.updater = UpdaterState::kAverage};
  const JobSpec job = job_of({gradients, elastic, averaged, slow});
  TrainerCluster cluster(job, 2), unbroken(job_of({gradients}), 2);
  rounds(cluster, 3);
  rounds(unbroken, 3);
  const Merger::Copy before = cluster.copy();

  // A stage that changes nothing, then the first one again: as if there had been none.
  cluster.enter_stage(1);
  CHECK(cluster.copy().histories == before.histories);
  const auto checkpoint = cluster.checkpoint();
  CHECK(checkpoint.version == cluster.version());
  CHECK(checkpoint.histories == before.histories);
  cluster.enter_stage(0);
  rounds(cluster, 2);
  rounds(unbroken, 2);
  REQUIRE(cluster.weights() == unbroken.weights());
  REQUIRE(cluster.copy().histories == unbroken.copy().histories);

  // Averaged updaters begin with those of the rule.
  const Merger::Copy rule = cluster.copy();
  cluster.enter_stage(2);
  CHECK(cluster.copy().histories == rule.histories);
  CHECK(cluster.checkpoint().histories == rule.histories);
  rounds(cluster, 2);
  const Merger::Copy mixed = cluster.copy();
  CHECK(mixed.histories != rule.histories);

  // A rate of 0 without momentum: the weights stand still, the histories become zero.
  cluster.enter_stage(3);
  rounds(cluster, 1);
  CHECK(cluster.weights() == mixed.weights);
  const Merger::Copy end = cluster.copy();
  for (const float value : end.histories.at(0)) REQUIRE(value == 0.0F);
}

TEST_CASE("a worker's rule follows the stage and keeps its history") {
  const UpdateSpec plain{}, coasting{.base_lr = 0.0F, .weight_decay = 0.0F};
  TrainerCluster cluster(job_of({plain, coasting}), 1);
  rounds(cluster, 4);
  const auto before = cluster.weights();
  cluster.enter_stage(1);
  rounds(cluster, 1);
  // Only the momentum of the stage before moves the weights.
  CHECK(cluster.weights() != before);
  const auto first = cluster.weights();
  rounds(cluster, 1);
  const auto second = cluster.weights();
  double one = 0.0, two = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    one += std::abs(first[i] - before[i]);
    two += std::abs(second[i] - first[i]);
  }
  CHECK(two == Approx(0.9 * one).epsilon(1e-3));
}

TEST_CASE("an elastic stage begins at the centre each time") {
  const UpdateSpec elastic{.kind = UpdateKind::kElasticMaster, .moving_rate = 0.5F};
  const UpdateSpec still{.kind = UpdateKind::kElasticMaster,
                         .moving_rate = 0.5F,
                         .base_lr = 0.0F,
                         .momentum = 0.0F};
  TrainerCluster cluster(job_of({elastic, still}), 1);
  rounds(cluster, 3);
  const auto centre = cluster.weights();
  cluster.enter_stage(1);
  rounds(cluster, 2);
  CHECK(cluster.weights() == centre);
}

}  // namespace speedo
