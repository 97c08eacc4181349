// Masters after masters, and beside masters, on one store in memory.
#include "actors/node.hpp"

#include <chrono>
#include <thread>

#include "support/catch.hpp"

#include <speedo/train/job_end.hpp>

#include "node_cluster.hpp"
#include "store/record_codec.hpp"
#include "support/older_manifest.hpp"

namespace speedo {
namespace {

using Cluster = test::NodeCluster;
using Resume = MasterOptions::Resume;
using test::StopSwitch;
using test::weights_of;

// A job whose course depends on nothing but its seed.
struct Deterministic : Cluster {
  explicit Deterministic(std::uint64_t iterations) {
    schedule().strategy.name = "sync";
    schedule().update.kind = UpdateKind::kGradientOnly;
    options.session.workers_start = 2;
    options.session.max_iteration = iterations;
  }
  // Runs to the end, with two workers.
  MasterProgress run() {
    auto master = start_master();
    auto workers = start_worker(master_address(), 2);
    const auto progress = master.get();
    if (!progress) FAIL(progress.error().message);
    CHECK(workers.get());
    return *progress;
  }
};

// Trains a job for `iterations`, so that the store has something to resume.
std::shared_ptr<MemoryKeyValue> store_after(std::uint64_t iterations) {
  Deterministic first(iterations);
  first.run();
  return first.memory;
}

}  // namespace

TEST_CASE("a job resumed from the store ends with the weights of one that was never interrupted") {
  constexpr std::uint64_t kIterations = 3000;
  Deterministic whole(kIterations);
  whole.run();

  Deterministic first(kIterations);
  auto master = first.start_master();
  auto workers = first.start_worker(first.master_address(), 2);
  REQUIRE(first.wait_for([&] { return first.iteration >= 10; }));
  first.master_stop.set();
  REQUIRE(master.get());
  CHECK(workers.get());
  REQUIRE(first.iteration < kIterations);

  Deterministic second(kIterations);
  second.memory = first.memory;
  second.options.resume = Resume::kStore;
  const MasterProgress progress = second.run();
  CHECK(progress.iteration == kIterations);
  CHECK(progress.contributions == 2 * kIterations);
  CHECK(weights_of(second.last_model) == weights_of(whole.last_model));
  CHECK(second.last_state.history(0).data(1) == whole.last_state.history(0).data(1));
}

TEST_CASE("what the workers of a master that died have left is erased by its successor") {
  Deterministic next(10);
  next.memory = store_after(5);
  const auto store = next.open();
  REQUIRE(erase_job_end(*store));  // as if it had not come to its end
  const std::vector<float> values(100, 1.0F);
  const std::string contribution = contribution_key(3, 7), local = local_key(3, 7);
  REQUIRE(put(*store, contribution, RecordInfo{}, values));
  REQUIRE(put(*store, local, RecordInfo{}, values));
  next.options.resume = Resume::kStore;
  next.run();
  CHECK(store->read(contribution).error().code == ErrorCode::kNotFound);
  CHECK(store->read(local).error().code == ErrorCode::kNotFound);
}

// Whether the job had come to its end before or not.
TEST_CASE("what a master wrote that died in its first put is erased by the next one") {
  Deterministic next(10);
  next.memory = store_after(5);
  const auto store = next.open();
  MasterClaim claim;
  claim.holder = "dying";
  claim.time = std::chrono::milliseconds(1);
  const auto claimed = store->claim_master(claim);
  REQUIRE(claimed);
  REQUIRE(claimed->granted);
  store->fence(claimed->term);
  RecordInfo info;
  info.element_count = 8;
  const std::vector<float> values(8, 1.0F);
  {
    const auto writer = store->write(weights_key(), info);
    writer->write(0, values);
    while (!writer->is_sent()) std::this_thread::yield();
  }
  const std::string left =
      job_prefix(next.options.job) + weights_key() + ":t" + std::to_string(claimed->term) + ":";
  REQUIRE(next.memory->list(left)->size() == 1);
  next.options.resume = Resume::kStore;
  next.run();
  CHECK(next.memory->list(left)->empty());
}

TEST_CASE("a job resumed from files goes on from their iteration, with their histories") {
  Deterministic whole(40);
  whole.run();
  Deterministic first(15);
  first.run();

  Deterministic second(40);
  second.options.initial_weights = std::make_shared<caffe::NetParameter>(first.last_model);
  second.options.initial_state = std::make_shared<caffe::SolverState>(first.last_state);
  second.options.initial_session = first.last_session;
  const MasterProgress progress = second.run();
  CHECK(progress.iteration == 40);
  CHECK(weights_of(second.last_model) == weights_of(whole.last_model));
}

TEST_CASE("a master that waits for another's lease goes on from the files that are there then") {
  Deterministic first(10);
  first.run();
  const auto start = [&](Deterministic& next) {
    next.options.resume = Resume::kNewest;
    next.hooks.choose_files = [&first](MasterOptions& options) {
      options.initial_weights = std::make_shared<caffe::NetParameter>(first.last_model);
      options.initial_state = std::make_shared<caffe::SolverState>(first.last_state);
      options.initial_session = first.last_session;
    };
    next.run();
    return next.first_iteration.load();
  };
  Deterministic waits(30), does_not(30);
  MasterClaim claim;
  claim.holder = "another";
  claim.time = std::chrono::milliseconds(50);
  const auto held = waits.open()->claim_master(claim);
  REQUIRE((held && held->granted));
  CHECK(start(waits) == 10);
  CHECK(start(does_not) == 0);
}

TEST_CASE("of one training's store and files the newest is resumed; from nothing one begins") {
  Deterministic files(10);  // the same training as of its fifth iteration
  files.memory = store_after(5);
  const MemoryImage after_5 = files.memory->image();
  files.options.resume = Resume::kStore;
  files.run();
  const MemoryImage after_10 = files.memory->image();
  const auto resume_newest = [&](std::shared_ptr<MemoryKeyValue> memory, bool with_files) {
    Deterministic next(30);
    next.options.resume = Resume::kNewest;
    next.memory = std::move(memory);
    if (with_files) {
      next.options.initial_weights = std::make_shared<caffe::NetParameter>(files.last_model);
      next.options.initial_state = std::make_shared<caffe::SolverState>(files.last_state);
      next.options.initial_session = files.last_session;
    }
    auto master = next.start_master();
    auto workers = next.start_worker(next.master_address(), 2);
    CHECK(master.get());
    CHECK(workers.get());
    CHECK(next.iteration == 30);
    return next.first_iteration.load();
  };
  CHECK(resume_newest(std::make_shared<MemoryKeyValue>(), false) == 0);
  CHECK(resume_newest(std::make_shared<MemoryKeyValue>(), true) == 10);
  const auto restored = [](const MemoryImage& image) {
    auto map = std::make_shared<MemoryKeyValue>();
    map->set_image(image);
    return map;
  };
  CHECK(resume_newest(restored(after_5), true) == 10);   // a store that lost its last seconds
  CHECK(resume_newest(restored(after_10), true) == 10);
  CHECK(resume_newest(restored(after_5), false) == 5);
}

TEST_CASE("a start that is given counts only where the store has nothing of the job") {
  Deterministic files(10);  // the same training as the store has, further on
  files.memory = store_after(5);
  const MemoryImage after_5 = files.memory->image();
  files.options.resume = Resume::kStore;
  files.run();
  const auto first_of = [&](const MemoryImage& image) {
    Deterministic next(30);
    next.memory->set_image(image);
    next.options.resume = Resume::kNewest;
    next.options.given_start = "a.solverstate";
    next.options.session.start_iteration = 10;
    next.options.initial_weights = std::make_shared<caffe::NetParameter>(files.last_model);
    next.options.initial_state = std::make_shared<caffe::SolverState>(files.last_state);
    next.run();
    CHECK(next.iteration == 30);
    return next.first_iteration.load();
  };
  CHECK(first_of(after_5) == 5);
  CHECK(first_of(MemoryKeyValue().image()) == 10);
}

TEST_CASE("files of another training are passed over while the store has one, however far on") {
  Deterministic earlier(20);
  earlier.run();
  Deterministic next(30);
  next.memory = store_after(5);
  next.options.resume = Resume::kNewest;
  next.options.initial_weights = std::make_shared<caffe::NetParameter>(earlier.last_model);
  next.options.initial_state = std::make_shared<caffe::SolverState>(earlier.last_state);
  next.options.initial_session = earlier.last_session;
  next.run();
  CHECK(next.first_iteration == 5);
}

TEST_CASE("a training keeps its name through every resume; a new one has another") {
  const auto name = [](const std::string& session) {
    const auto origin = MasterSession::origin_of(session);
    REQUIRE(origin);
    CHECK(origin->training.is_known());
    return origin->training;
  };
  Deterministic first(5);
  std::vector<bool> new_ones;
  std::vector<std::uint64_t> iterations;
  const auto note = [&](const TrainingId&, bool is_new, std::uint64_t iteration) -> Result<void> {
    new_ones.push_back(is_new);
    iterations.push_back(iteration);
    return {};
  };
  first.hooks.on_training = note;
  first.run();
  Deterministic from_store(10);
  from_store.memory = first.memory;
  from_store.options.resume = Resume::kStore;
  from_store.hooks.on_training = note;
  from_store.run();
  Deterministic from_files(15);
  from_files.options.initial_weights = std::make_shared<caffe::NetParameter>(first.last_model);
  from_files.options.initial_state = std::make_shared<caffe::SolverState>(first.last_state);
  from_files.options.initial_session = from_store.last_session;
  from_files.hooks.on_training = note;
  from_files.run();
  CHECK(name(from_store.last_session) == name(first.last_session));
  CHECK(name(from_files.last_session) == name(first.last_session));
  Deterministic other(5);
  other.memory = first.memory;
  other.hooks.on_training = note;
  other.run();
  CHECK(name(other.last_session) != name(first.last_session));
  Deterministic from_one_process(10);  // whose files have no session
  from_one_process.options.session.training = {7, 8};
  from_one_process.options.session.start_iteration = 5;
  from_one_process.options.initial_weights =
      std::make_shared<caffe::NetParameter>(first.last_model);
  from_one_process.hooks.on_training = note;
  from_one_process.run();
  CHECK(name(from_one_process.last_session) == TrainingId{7, 8});
  CHECK(new_ones == std::vector<bool>{true, false, false, true, false});
  CHECK(iterations == std::vector<std::uint64_t>{0, 5, 10, 0, 5});
}

TEST_CASE("files of a training in one process are newer than the store by their iteration") {
  const auto resumed_with = [](std::uint64_t files_iteration) {
    Deterministic first(5);
    first.run();
    Deterministic next(10);
    next.memory = first.memory;
    next.options.resume = Resume::kNewest;
    const auto origin = MasterSession::origin_of(first.last_session);
    REQUIRE(origin);
    next.options.session.training = origin->training;
    next.options.session.start_iteration = files_iteration;
    next.options.initial_weights = std::make_shared<caffe::NetParameter>(first.last_model);
    next.options.initial_state = std::make_shared<caffe::SolverState>(first.last_state);
    next.run();
    CHECK(MasterSession::origin_of(next.last_session)->training == origin->training);
    return next.first_iteration.load();
  };
  CHECK(resumed_with(8) == 8);
  CHECK(resumed_with(3) == 5);
}

TEST_CASE("a training that cannot be noted down changes nothing in the store") {
  Cluster other;
  other.memory = store_after(3);
  const std::uint64_t version = other.stored_version();
  other.hooks.on_training = [](const TrainingId&, bool, std::uint64_t) -> Result<void> {
    return Error{ErrorCode::kCannotWrite, "no room"};
  };
  const auto refused = other.start_master().get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCannotWrite);
  CHECK(other.stored_version() == version);
}

TEST_CASE("a worker that was away when its job ended learns it from the store") {
  Cluster first;
  first.options.session.max_iteration = 1000000;
  auto master = first.start_master();
  const std::string address = first.master_address();
  auto worker = first.start_worker(address);
  REQUIRE(first.wait_for([&] { return first.iteration > 3; }));
  // Another master, elsewhere, takes the job, finds nothing to train and ends.
  Cluster second;
  second.memory = first.memory;
  second.options.resume = Resume::kStore;
  second.options.take_over = true;
  second.options.session.max_iteration = 1;
  const auto last = second.start_master().get();
  REQUIRE(last);
  CHECK_FALSE(master.get());
  CHECK(worker.get());
}

TEST_CASE("the store's weights may be counted from another iteration") {
  Deterministic next(12);
  next.memory = store_after(20);
  next.options.resume = Resume::kStore;
  next.options.renumber = true;
  next.options.session.start_iteration = 5;
  const MasterProgress progress = next.run();
  CHECK(next.first_iteration == 5);
  CHECK(progress.iteration == 12);
  CHECK(progress.merges == 7);

  Deterministic fresh(7);
  fresh.run();
  CHECK(weights_of(next.last_model) != weights_of(fresh.last_model));
}

TEST_CASE("nothing to resume, and another net's weights, are named errors") {
  Cluster empty;
  empty.options.resume = Resume::kStore;
  const auto nothing = empty.start_master().get();
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == ErrorCode::kNotFound);
  CHECK(nothing.error().message.find("'job'") != std::string::npos);
  CHECK(nothing.error().message.find("--resume") != std::string::npos);

  for (const Resume resume : {Resume::kStore, Resume::kNewest}) {
    Cluster other;
    other.memory = store_after(3);
    const std::uint64_t version = other.stored_version();
    std::string& solver = other.options.spec.solver_text;
    solver.replace(solver.find("num_output: 24"), 14, "num_output: 23");
    other.options.resume = resume;
    const auto refused = other.start_master().get();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kMismatch);
    CHECK(other.stored_version() == version);
  }
}

TEST_CASE("histories of another solver type are a named error, those of the same kind are not") {
  const auto resumed_as = [](const std::string& fields) {
    auto job = std::make_unique<Deterministic>(5);
    job->memory = store_after(3);
    std::string& solver = job->options.spec.solver_text;
    const std::string momentum = "momentum: 0.9";
    solver.replace(solver.find(momentum), momentum.size(), fields);
    job->options.resume = Resume::kStore;
    return job;
  };
  const auto other = resumed_as("type: \"AdaGrad\"");
  const std::uint64_t version = other->stored_version();
  const auto refused = other->start_master().get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kMismatch);
  for (const char* word : {"\"SGD\"", "\"AdaGrad\"", "'job'", "--weights"}) {
    INFO(refused.error().message);
    CHECK(refused.error().message.find(word) != std::string::npos);
  }
  CHECK(other->stored_version() == version);
  CHECK(resumed_as("type: \"Nesterov\" momentum: 0.9")->run().iteration == 5);
}

TEST_CASE("weights that an earlier SpeeDO left are refused with what to do, and stay until then") {
  for (const Resume resume : {Resume::kStore, Resume::kNewest, Resume::kNo}) {
    Deterministic next(5);
    next.memory = store_after(3);
    auto older = std::make_shared<KvOperation>();
    older->kind = KvOperation::Kind::kSet;
    older->key = RecordKeys("job", weights_key()).manifest();
    older->head = test::older_manifest();
    REQUIRE(execute(*next.memory, older));
    next.options.resume = resume;
    if (resume == Resume::kNo) {
      next.run();
      CHECK(next.stored_version() != 0);
      continue;
    }
    const auto refused = next.start_master().get();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kMismatch);
    CHECK_THAT(refused.error().message, Catch::Contains("layout 1"));
    CHECK_THAT(refused.error().message, Catch::Contains("--resume=FILE"));
    CHECK(*next.memory->image().at(older->key).bytes == older->head);
  }
}

TEST_CASE("a job that is over already ends again, with its snapshot") {
  Deterministic done(20);
  done.memory = store_after(20);
  done.options.resume = Resume::kStore;
  const auto progress = done.start_master().get();
  REQUIRE(progress);
  CHECK(progress->iteration == 20);
  CHECK(done.snapshots == std::vector<std::int64_t>{20});
}

TEST_CASE("a second master beside a healthy one is refused, and the first does not notice") {
  Cluster first;
  first.options.session.max_iteration = 1000000;
  auto master = first.start_master();
  auto worker = first.start_worker(first.master_address());
  REQUIRE(first.wait_for([&] { return first.iteration > 3; }));
  for (const Resume resume : {Resume::kNo, Resume::kStore, Resume::kNewest}) {
    Cluster second;
    second.memory = first.memory;
    second.options.resume = resume;
    const auto refused = second.start_master().get();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kSuperseded);
  }
  const std::uint64_t then = first.iteration;
  REQUIRE(first.wait_for([&] { return first.iteration > then + 3; }));
  first.master_stop.set();
  const auto progress = master.get();
  REQUIRE(progress);
  CHECK(worker.get());
  CHECK(progress->merges == progress->iteration);
}

TEST_CASE("a master that is taken over from ends without a snapshot, its worker looks on") {
  Cluster first;
  first.options.session.max_iteration = 1000000;
  auto old = first.start_master();
  StopSwitch leave;
  auto worker = first.start_worker(first.master_address(), 1, &leave);
  REQUIRE(first.wait_for([&] { return first.iteration > 3; }));
  Cluster second;
  second.memory = first.memory;
  second.options.resume = Resume::kStore;
  second.options.take_over = true;
  second.options.session.max_iteration = 1000000;
  auto successor = second.start_master();
  auto other_worker = second.start_worker(second.master_address());
  const auto refused = old.get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kSuperseded);
  CHECK(first.snapshots.empty());
  REQUIRE(second.wait_for([&] { return second.iteration > first.iteration + 3; }));
  CHECK(worker.wait_for(std::chrono::seconds{0}) == std::future_status::timeout);
  leave.set();
  CHECK(worker.get());
  second.master_stop.set();
  CHECK(successor.get());
  CHECK(other_worker.get());
}

}  // namespace speedo
