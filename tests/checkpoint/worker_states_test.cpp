// Checkpoints that have the states of workers.

#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/passed_on_files.hpp"
#include "checkpoint/resume.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

const CheckpointOwner kStatesOwner{"job", Digest{1, 2}};
const TrainingId kStatesTraining{5, 6};

struct StatesPlace {
  TempDir folder;
  caffe::SolverParameter solver;
  std::unique_ptr<CheckpointWriter> writer;

  explicit StatesPlace(RotationRules rules = {}) {
    solver.set_snapshot_prefix((folder / "net").string());
    writer = std::make_unique<CheckpointWriter>(solver, "job", rules);
    REQUIRE(writer->begin(kStatesTraining));
  }
  fs::path file(std::uint64_t iteration, const std::string& end) const {
    return folder / ("net_iter_" + std::to_string(iteration) + end);
  }
  // The state of worker 13 is lost.
  void write(std::uint64_t iteration, const std::vector<WorkerId>& workers) const {
    caffe::NetParameter net;
    net.add_layer()->set_name("ip");
    net.mutable_layer(0)->add_blobs()->add_data(1.0F);
    caffe::SolverState state;
    state.set_iter(static_cast<std::int32_t>(iteration));
    const auto state_of = [iteration](WorkerId worker) -> Result<StateOfWorker> {
      if (worker.value == 13) return Error{ErrorCode::kNotFound, "it is lost"};
      StateOfWorker made;
      made.head.set_iteration(iteration);
      made.head.set_worker(worker.value);
      made.head.set_histories(2);
      made.values = {static_cast<float>(worker.value), static_cast<float>(iteration)};
      return made;
    };
    REQUIRE(writer->write({static_cast<std::int64_t>(iteration), net, state, "session",
                           kStatesOwner.model, workers, state_of}));
  }
  Result<SavedCheckpoint> load(std::uint64_t iteration) const {
    return load_checkpoint(file(iteration, ".speedo").string(), kStatesOwner);
  }
};

void require_states(const StatesPlace& place, std::uint64_t iteration,
                    const std::vector<float>& of) {
  const auto saved = place.load(iteration);
  if (!saved) FAIL(saved.error().message);
  REQUIRE(saved->workers.count == of.size());
  for (std::size_t k = 0; k < of.size(); ++k) {
    const auto state = saved->workers.read(k);
    if (!state) FAIL(state.error().message);
    CHECK(state->values == std::vector<float>{of[k], static_cast<float>(iteration)});
  }
}

}  // namespace

TEST_CASE("states come back in the order of their seats; one that is lost is left out") {
  const StatesPlace place;
  place.write(10, {{4}, {13}, {9}});
  require_states(place, 10, {4.0F, 9.0F});
  place.write(10, {{5}});  // The same iteration again.
  require_states(place, 10, {5.0F});
  CHECK_FALSE(fs::exists(place.file(10, ".worker1")));
  CHECK(fs::exists(place.file(10, ".worker0")));
}

TEST_CASE("a state that is cut off, changed, gone or another's keeps its seat, and fails there") {
  const StatesPlace place;
  place.write(10, {{1}, {2}});
  place.write(20, {{1}, {2}});
  const fs::path file = place.file(20, ".worker0");
  REQUIRE(fs::exists(file));
  SECTION("cut off") { fs::resize_file(file, fs::file_size(file) - 1); }
  SECTION("changed") { std::ofstream(file, std::ios::in | std::ios::binary) << "x"; }
  SECTION("gone") { fs::remove(file); }
  SECTION("another's") {
    fs::copy_file(place.file(10, ".worker0"), file, fs::copy_options::overwrite_existing);
  }
  const auto saved = place.load(20);
  if (!saved) FAIL(saved.error().message);
  REQUIRE(saved->workers.count == 2);
  const auto lost = saved->workers.read(0);
  REQUIRE_FALSE(lost);
  CHECK(is_state_lost(lost.error()));
  const auto whole = saved->workers.read(1);
  if (!whole) FAIL(whole.error().message);
  CHECK(whole->values.front() == 2.0F);
  CheckpointOwner owner = kStatesOwner;
  const auto newest = [&](StatesNeeded needed) {
    owner.states = needed;
    const auto found = newest_checkpoint(place.solver.snapshot_prefix(), owner, kStatesTraining);
    return found ? found->record.iteration() : 0;
  };
  CHECK(newest(StatesNeeded::kNone) == 20);
  CHECK(newest(StatesNeeded::kWhatIsLeft) == 20);
  CHECK(newest(StatesNeeded::kAll) == 10);
  const auto refused = load_checkpoint(place.file(20, ".speedo").string(), owner);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("leave --deterministic or") != std::string::npos);
}

TEST_CASE(
    "a state whose file cannot be read now is not lost: its checkpoint is not taken without") {
  class AwayFiles : public test::PassedOnFiles {
   public:
    Result<std::string> read(const Path& file, std::size_t bytes_max) override {
      if (file.extension() == ".worker0") return Error{ErrorCode::kUnavailable, "it is away"};
      return PassedOnFiles::read(file, bytes_max);
    }
  } away;
  const StatesPlace place;
  place.write(10, {{1}, {2}});
  const std::string file = place.file(10, ".speedo").string();
  CheckpointOwner owner = kStatesOwner;
  CHECK(load_checkpoint(file, owner, away));
  owner.states = StatesNeeded::kWhatIsLeft;
  CHECK(load_checkpoint(file, owner));
  const auto refused = load_checkpoint(file, owner, away);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  const fs::path too_long = place.folder / std::string(300, 'x');
  CHECK(disk_files().size(too_long).error().code != ErrorCode::kNotFound);
  CHECK(disk_files().size(place.folder / "none").error().code == ErrorCode::kNotFound);
}

TEST_CASE("states are needed by jobs whose snapshots hold them, all of them for the same bits") {
  MasterOptions options;
  options.spec.deterministic = true;
  CHECK(states_needed(options) == StatesNeeded::kNone);
  options.session.snapshot_workers = true;
  CHECK(states_needed(options) == StatesNeeded::kAll);
  options.spec.deterministic = false;
  CHECK(states_needed(options) == StatesNeeded::kWhatIsLeft);
}

TEST_CASE("states whose files get their names between the look at them and the reading come back") {
  StatesPlace place;
  place.write(10, {WorkerId{1}, WorkerId{2}});
  const auto record = read_record(place.file(10, ".speedo"));
  REQUIRE(record);
  for (const auto* part : parts_of(*record)) {
    const fs::path name = place.folder / part->name();
    fs::rename(name, name.string() + new_suffix(*record));
  }
  const auto saved = place.load(10);
  if (!saved) FAIL(saved.error().message);
  REQUIRE(saved->workers.count == 2);
  REQUIRE(place.writer->begin(kStatesTraining));
  CHECK(fs::exists(place.file(10, ".worker1")));
  const auto second = saved->workers.read(1);
  if (!second) FAIL(second.error().message);
  CHECK(second->values.front() == 2.0F);
}

TEST_CASE("states go with their checkpoint") {
  const StatesPlace place({.keep = 1});
  place.write(10, {{1}});
  place.write(20, {{1}});
  CHECK_FALSE(fs::exists(place.file(10, ".worker0")));
  CHECK(fs::exists(place.file(20, ".worker0")));
}

TEST_CASE("a master takes the states only if its own snapshots are to have them") {
  const StatesPlace place;
  place.write(10, {{1}, {2}});
  for (const bool wanted : {false, true}) {
    MasterOptions options;
    options.session.snapshot_workers = wanted;
    auto saved = place.load(10);
    REQUIRE(saved);
    go_on_from(std::move(*saved), options);
    CHECK(options.initial_states.count == (wanted ? 2U : 0U));
  }
}

TEST_CASE("of files that are chosen anew nothing of the earlier ones stays") {
  const StatesPlace place;
  place.write(10, {{1}, {2}});
  place.write(20, {{1}, {2}, {3}});
  MasterOptions before;
  before.session.snapshot_workers = true;
  before.session.start_iteration = 3;
  before.initial_session = "of no files";
  before.given_start = "weights of the user";
  MasterOptions options = before;
  const auto choose = [&](std::int64_t iteration) {
    auto saved = place.load(iteration);
    REQUIRE(saved);
    go_on_from_instead(std::move(*saved), before, options);
    CHECK(options.session.start_iteration == static_cast<std::uint64_t>(iteration));
    CHECK(options.initial_weights);
    CHECK(options.given_start.empty());
  };
  choose(20);
  choose(10);
  CHECK(options.initial_states.count == 2);
  go_on_from_instead(std::nullopt, before, options);
  CHECK(options.session.start_iteration == 3);
  CHECK_FALSE(options.session.training.is_known());
  CHECK(options.initial_session == "of no files");
  CHECK(options.given_start == "weights of the user");
  CHECK_FALSE(options.initial_weights);
  CHECK_FALSE(options.initial_state);
  CHECK(options.initial_states.count == 0);
}

}  // namespace speedo
