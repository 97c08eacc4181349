// Checkpoints in files: what is written, what is gone on from, what is removed.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <speedo/base/random.hpp>

#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/resume.hpp"
#include "checkpoint/rotation.hpp"
#include "checkpoint/train_checkpoints.hpp"
#include "checkpoint/training_file.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

const CheckpointOwner kOwner{"job", Digest{1, 2}};

caffe::NetParameter net_of(float value) {
  caffe::NetParameter net;
  caffe::LayerParameter* layer = net.add_layer();
  layer->set_name("ip");
  layer->add_blobs()->add_data(value);
  return net;
}

// A folder with checkpoints of a job in it.
struct Place {
  TempDir folder;
  caffe::SolverParameter solver;

  Place() { solver.set_snapshot_prefix((folder / "net").string()); }
  std::string prefix() const { return solver.snapshot_prefix(); }
  fs::path file(std::int64_t iteration, const std::string& end) const {
    return prefix() + "_iter_" + std::to_string(iteration) + end;
  }
  CheckpointWriter writer(RotationRules rules = {}) const { return {solver, "job", rules}; }
  std::unique_ptr<CheckpointWriter> writer_of(const TrainingId& training,
                                              RotationRules rules = {}) const {
    auto writer = std::make_unique<CheckpointWriter>(solver, "job", rules);
    REQUIRE(writer->begin(training));
    return writer;
  }
  std::optional<SavedCheckpoint> newest() const {
    return newest_checkpoint(prefix(), kOwner, std::nullopt);
  }
  std::optional<std::uint64_t> newest_of(const TrainingId& training) const {
    const auto saved = newest_checkpoint(prefix(), kOwner, training);
    if (!saved) return std::nullopt;
    return saved->record.iteration();
  }
  std::optional<std::uint64_t> newest_iteration() const {
    const auto saved = newest();
    if (!saved) return std::nullopt;
    return saved->record.iteration();
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      all.insert(entry.path().filename());
    }
    return all;
  }
};

Result<void> write_of(const std::string& session, CheckpointWriter& writer, std::int64_t iteration,
                      float value = 1.0F, Digest model = kOwner.model) {
  const caffe::NetParameter net = net_of(value);
  caffe::SolverState state;
  state.set_iter(static_cast<std::int32_t>(iteration));
  return writer.write({iteration, net, state, session, model});
}

void write(CheckpointWriter& writer, std::int64_t iteration, float value = 1.0F,
           Digest model = kOwner.model) {
  const std::string session = "session " + std::to_string(iteration);
  const auto written = write_of(session, writer, iteration, value, model);
  INFO((written ? "" : written.error().message));
  REQUIRE(written);
}

std::string session_of_term(std::uint64_t term) {
  record::Session session;
  session.set_stage_count(1);
  session.set_term(term);
  return session.SerializeAsString();
}

void overwrite(const fs::path& file, const std::string& content) {
  std::ofstream(file, std::ios::binary) << content;
}

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void flip_bit(const fs::path& file, std::size_t byte) {
  std::string bytes = content(file);
  REQUIRE(byte < bytes.size());
  bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
  overwrite(file, bytes);
}

std::set<std::string> set_of(const std::vector<std::int64_t>& iterations) {
  std::set<std::string> names;
  for (const std::int64_t iteration : iterations) {
    for (const char* end : {".caffemodel", ".solverstate", ".speedo"}) {
      names.insert("net_iter_" + std::to_string(iteration) + end);
    }
  }
  return names;
}

// A checkpoint whose weights are infinite, as if it had been written so.
void make_diverged(const Place& place, std::int64_t iteration) {
  const fs::path model = place.file(iteration, ".caffemodel");
  overwrite(model, net_of(std::numeric_limits<float>::infinity()).SerializeAsString());
  auto record = read_record(place.file(iteration, ".speedo"));
  auto part = describe_part(model, model.filename());
  REQUIRE(record);
  REQUIRE(part);
  *record->mutable_model() = *part;
  record->set_finite(false);
  REQUIRE(write_record(place.file(iteration, ".speedo"), *record));
}

TEST_CASE("A checkpoint is three files, and comes back as it was") {
  const Place place;
  CheckpointWriter writer = place.writer();
  CHECK(writer.last_model().empty());
  write(writer, 10, 0.5F);
  CHECK(place.names() == set_of({10}));
  CHECK(writer.last_model() == place.file(10, ".caffemodel").string());
  const auto saved = load_checkpoint(place.file(10, ".speedo"), kOwner);
  REQUIRE(saved);
  CHECK(saved->record.iteration() == 10);
  CHECK(saved->record.session() == "session 10");
  CHECK(saved->model.layer(0).blobs(0).data(0) == 0.5F);
  CHECK(saved->state.iter() == 10);
}

TEST_CASE("Weights that are not finite are no checkpoint: nothing is written") {
  const Place place;
  CheckpointWriter writer = place.writer();
  write(writer, 1);
  for (const float value : {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    caffe::SolverState state;
    const auto written = writer.write({2, net_of(value), state, "session", kOwner.model});
    REQUIRE_FALSE(written);
    CHECK(written.error().code == ErrorCode::kNotFinite);
    CHECK(written.error().message.find("iteration 2") != std::string::npos);
  }
  CHECK(place.names() == set_of({1}));
}

TEST_CASE("A checkpoint may be moved with its files") {
  const Place place;
  CheckpointWriter writer = place.writer();
  write(writer, 10);
  const TempDir other;
  for (const std::string& name : place.names()) fs::rename(place.folder / name, other / name);
  CHECK(load_checkpoint((other / "net_iter_10.speedo").string(), kOwner));
}

TEST_CASE("A checkpoint's histories are those of its solver's type") {
  Place place;
  place.solver.set_type("Adam");
  CheckpointWriter writer = place.writer();
  write(writer, 10);
  const std::string record = place.file(10, ".speedo").string();
  const auto owner = [](const std::string& type) {
    return CheckpointOwner{kOwner.job, kOwner.model, type};
  };
  CHECK(load_checkpoint(record, owner("Adam")));
  CHECK(load_checkpoint(record, owner("")));  // whose histories nobody asks for
  const auto refused = load_checkpoint(record, owner("AdaDelta"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kMismatch);
  for (const char* word : {"\"Adam\"", "\"AdaDelta\"", "net_iter_10.speedo", "--weights"}) {
    INFO(refused.error().message);
    CHECK(refused.error().message.find(word) != std::string::npos);
  }
  CHECK_FALSE(newest_checkpoint(place.prefix(), owner("SGD"), std::nullopt));
  // Caffe's state file alone, with the record beside it.
  const std::string state = place.file(10, ".solverstate").string();
  CHECK(check_state_type(state, "Adam"));
  const auto state_refused = check_state_type(state, "RMSProp");
  REQUIRE_FALSE(state_refused);
  CHECK(state_refused.error().code == ErrorCode::kMismatch);
  // SGD and Nesterov keep the same.
  place.solver.set_type("SGD");
  CheckpointWriter momentum = place.writer();
  write(momentum, 20);
  CHECK(check_state_type(place.file(20, ".solverstate").string(), "Nesterov"));
  // Nothing beside it, or nothing that says: it may be of any.
  CHECK(check_state_type(place.file(30, ".solverstate").string(), "Adam"));
  auto old = read_record(record);
  REQUIRE(old);
  old->clear_solver_type();
  REQUIRE(write_record(record, *old));
  CHECK(load_checkpoint(record, owner("AdaDelta")));
}

TEST_CASE("A checkpoint of something else, or a damaged one, is refused with the reason") {
  const Place place;
  CheckpointWriter writer = place.writer();
  write(writer, 10);
  const std::string record = place.file(10, ".speedo").string();
  const auto error = [&](const CheckpointOwner& owner = kOwner) {
    const auto loaded = load_checkpoint(record, owner);
    REQUIRE_FALSE(loaded);
    return loaded.error();
  };
  CHECK(error({"job", Digest{1, 3}}).code == ErrorCode::kMismatch);
  CHECK(error({"job", Digest{1, 3}}).message.find("another net") != std::string::npos);
  CHECK(error({"work", Digest{1, 3}}).message.find("that of job 'job'") != std::string::npos);
  CHECK(error({"work", Digest{1, 3}}).message.find("of job 'work'") != std::string::npos);
  CHECK(error({"work", Digest{1, 2}}).code == ErrorCode::kMismatch);
  CHECK(error({"work", Digest{1, 2}}).message.find("job 'job'") != std::string::npos);
  SECTION("any bit of the record") {
    const std::string whole = content(record);
    for (std::size_t byte = 0; byte < whole.size(); ++byte) {
      INFO(byte);
      flip_bit(record, byte);
      CHECK(error().code == ErrorCode::kCorrupt);
      overwrite(record, whole);
    }
    for (std::size_t size = 0; size < whole.size(); ++size) {
      overwrite(record, whole.substr(0, size));
      CHECK(error().code == ErrorCode::kCorrupt);
    }
  }
  SECTION("weights") {
    flip_bit(place.file(10, ".caffemodel"), 5);
    CHECK(error().code == ErrorCode::kCorrupt);
    CHECK(error().message.find("net_iter_10.caffemodel") != std::string::npos);
  }
  SECTION("truncated weights") {
    const std::string whole = content(place.file(10, ".caffemodel"));
    overwrite(place.file(10, ".caffemodel"), whole.substr(0, whole.size() - 1));
    CHECK(error().message.find("truncated") != std::string::npos);
  }
  SECTION("solver state gone") {
    fs::remove(place.file(10, ".solverstate"));
    CHECK(error().code == ErrorCode::kNotFound);
  }
  SECTION("not a checkpoint at all") {
    overwrite(record, "PK\x03\x04 something else, and long enough");
    CHECK(error().code == ErrorCode::kCorrupt);
    CHECK(error().message.find("not a checkpoint") != std::string::npos);
  }
  SECTION("gone") {
    fs::remove(record);
    CHECK(error().code == ErrorCode::kNotFound);
  }
}

TEST_CASE("The newest valid checkpoint is gone on from, whatever lies about") {
  const Place place;
  CHECK_FALSE(place.newest());
  CheckpointWriter writer = place.writer();
  for (const std::int64_t iteration : {10, 20, 30}) write(writer, iteration);
  write(writer, 40);
  make_diverged(place, 40);
  write(writer, 50, 1.0F, Digest{7, 7});
  overwrite(place.file(60, ".speedo"), "foreign");
  overwrite(place.file(70, ".caffemodel"), "no record yet");
  CHECK(place.newest_iteration() == 30);
  flip_bit(place.file(30, ".solverstate"), 0);
  CHECK(place.newest_iteration() == 20);
  fs::remove(place.file(20, ".caffemodel"));
  CHECK(place.newest_iteration() == 10);
  fs::remove(place.file(10, ".speedo"));
  CHECK_FALSE(place.newest());
}

TEST_CASE("Newest is what was written last, not what has the highest number") {
  const Place place;
  CheckpointWriter writer = place.writer();
  write(writer, 1000);
  CheckpointWriter anew = place.writer({1, false});
  write(anew, 10);
  CHECK(place.newest_iteration() == 10);
  CHECK(place.names() == set_of({10}));
}

TEST_CASE("What a master writes that has lost the job is older than its successor's") {
  const Place place;
  const TrainingId training{1, 1};
  const auto earlier = place.writer_of(training, {1, false});
  REQUIRE(write_of(session_of_term(5), *earlier, 60));
  const auto later = place.writer_of(training, {1, false});
  REQUIRE(write_of(session_of_term(7), *later, 104));
  REQUIRE(write_of(session_of_term(5), *earlier, 77));
  CHECK(place.newest_of(training) == 104);
  std::set<std::string> expected = set_of({104});
  expected.insert("net.job.training");
  CHECK(place.names() == expected);

  const auto refused = write_of(session_of_term(5), *earlier, 104, 0.5F);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kSuperseded);
  CHECK(refused.error().message.find("taken over this training") != std::string::npos);
  CHECK(place.newest()->model.layer(0).blobs(0).data(0) == 1.0F);

}

TEST_CASE("Newest is what the latest writer has written, with a master or without") {
  const Place place;
  const TrainingId training{1, 1};
  const RotationRules one{1, false};
  const auto first = place.writer_of(training, one);
  REQUIRE(write_of(session_of_term(7), *first, 100));
  // One process, without a master, and a master whose clock is behind the first one's.
  write(*place.writer_of(training, one), 120);
  CHECK(place.newest_of(training) == 120);
  CHECK_FALSE(write_of(session_of_term(7), *first, 120));
  const auto third = place.writer_of(training, one);
  for (const std::int64_t iteration : {110, 120}) {
    REQUIRE(write_of(session_of_term(4), *third, iteration));
    CHECK(place.newest_of(training) == iteration);
  }
  REQUIRE(write_of(session_of_term(7), *first, 130));
  CHECK(place.newest_of(training) == 120);
}

TEST_CASE("Checkpoints of trainings under one prefix are told apart") {
  const Place place;
  const TrainingId first{1, 1}, second{2, 2}, third{3, 3};
  const auto old = place.writer_of(first);
  write(*old, 300);
  write(*old, 600);
  const auto young = place.writer_of(second, {1, false});
  write(*young, 50);
  write(*young, 76);
  CHECK(place.newest_of(first) == 600);
  CHECK(place.newest_of(second) == 76);
  CHECK(place.newest_of(third) == std::nullopt);
  CHECK(place.newest_iteration() == 76);  // none is known: what was written last
  std::set<std::string> expected = set_of({76, 300, 600});
  expected.insert("net.job.training");
  CHECK(place.names() == expected);       // rotation is of one training
  CHECK(read_training_file(training_file(place.prefix(), "job")) == second);

  write(*young, 600);                     // replaces that of the other training, whole
  CHECK(place.newest_of(first) == 300);
  CHECK(place.newest_of(second) == 600);
}

TEST_CASE("A training's file that is damaged or missing names none") {
  const TempDir folder;
  const fs::path file = training_file((folder / "net").string(), "job");
  CHECK_FALSE(read_training_file(file));
  REQUIRE(write_training_file(file, {0x1234, UINT64_MAX}));
  CHECK(read_training_file(file) == TrainingId{0x1234, UINT64_MAX});
  const std::string whole = content(file);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    overwrite(file, whole.substr(0, length));
    CHECK_FALSE(read_training_file(file));
  }
  overwrite(file, whole + "x");
  CHECK_FALSE(read_training_file(file));
}

TEST_CASE("Rotation keeps the last ones, and all without a rule") {
  const Place place;
  CheckpointWriter all = place.writer();
  for (const std::int64_t iteration : {1, 2, 3}) write(all, iteration);
  CHECK(place.names() == set_of({1, 2, 3}));
  CheckpointWriter two = place.writer({2, false});
  write(two, 4);
  CHECK(place.names() == set_of({3, 4}));
}

TEST_CASE("Rotation keeps the best tested one, whenever its test ends") {
  const Place place;
  const auto score = [](float accuracy) {
    TestScores scores;
    scores.accuracy = accuracy;
    scores.loss = 1.0F - accuracy;
    return scores;
  };
  CheckpointWriter writer = place.writer({1, true});
  write(writer, 1);
  writer.on_tested(1, score(0.5F));   // after its checkpoint
  writer.on_tested(2, score(0.75F));  // before it
  write(writer, 2);
  CHECK(place.names() == set_of({2}));
  write(writer, 3);
  writer.on_tested(3, score(0.25F));
  CHECK(place.names() == set_of({2, 3}));
  CheckpointWriter later = place.writer({1, true});  // a restarted master
  write(later, 4);
  CHECK(place.names() == set_of({2, 4}));
  later.on_tested(4, score(0.8F));
  CHECK(place.names() == set_of({4}));
}

TEST_CASE("Rotation never removes the last valid finite checkpoint, nor what is not its own") {
  const Place place;
  CheckpointWriter writer = place.writer();
  for (const std::int64_t iteration : {1, 2, 3}) write(writer, iteration);
  make_diverged(place, 2);
  make_diverged(place, 3);
  rotate_checkpoints(place.prefix(), kOwner, TrainingId{}, {1, false});
  CHECK(place.names() == set_of({1, 3}));
  CHECK(place.newest_iteration() == 1);

  overwrite(place.file(4, ".caffemodel"), "of speedo train");
  CheckpointWriter other(place.solver, "other job", {1, false});
  write(other, 5);
  write(other, 6);
  CHECK(place.names().contains("net_iter_1.speedo"));
  overwrite(place.file(6, ".caffemodel"), "replaced by hand");
  write(other, 7);
  CHECK(place.names().contains("net_iter_6.caffemodel"));
  CHECK_FALSE(place.names().contains("net_iter_6.solverstate"));
  CHECK(content(place.file(4, ".caffemodel")) == "of speedo train");
}

// The sets of files that a crash leaves between the steps of a rotation or a replacement.
TEST_CASE("A crash between two steps leaves a checkpoint to go on from") {
  const Place place;
  CheckpointWriter writer = place.writer();
  write(writer, 1);
  write(writer, 2);
  SECTION("while a new one is written") {
    overwrite(place.file(3, ".caffemodel"), "new");
    CHECK(place.newest_iteration() == 2);
    overwrite(place.file(3, ".solverstate"), "new");
    CHECK(place.newest_iteration() == 2);
  }
  SECTION("while an old one is removed, and the rest goes the next time") {
    fs::remove(place.file(1, ".caffemodel"));
    CHECK(place.newest_iteration() == 2);
    fs::remove(place.file(1, ".solverstate"));
    CheckpointWriter later = place.writer({1, false});
    write(later, 3);
    CHECK(place.names() == set_of({3}));
  }
  SECTION("while one of the same iteration is replaced") {
    const std::string model = content(place.file(2, ".caffemodel"));
    const std::string state = content(place.file(2, ".solverstate"));
    const std::string fresh = ".caffemodel" + new_suffix(*read_record(place.file(2, ".speedo")));
    overwrite(place.file(2, fresh), "half");
    CHECK(place.newest_iteration() == 2);
    write(writer, 2, 0.25F);
    const std::string new_model = content(place.file(2, ".caffemodel"));
    REQUIRE(new_model != model);
    // As if the files had not been renamed yet.
    fs::rename(place.file(2, ".caffemodel"), place.file(2, fresh));
    overwrite(place.file(2, ".caffemodel"), model);
    REQUIRE(place.newest());
    CHECK(place.newest()->model.layer(0).blobs(0).data(0) == 0.25F);
    write(writer, 2, 0.75F);
    CHECK(place.newest()->model.layer(0).blobs(0).data(0) == 0.75F);
    CHECK(place.names() == set_of({1, 2}));
  }
}

// Writes checkpoints for ever, of few iterations and many, and says which are written.
[[noreturn]] void write_for_ever(const Place& place, int pipe) {
  const int null = ::open("/dev/null", O_WRONLY);
  ::dup2(null, STDERR_FILENO);
  ::dup2(null, STDOUT_FILENO);
  CheckpointWriter writer = place.writer({1, false});
  for (std::int32_t count = 1;; ++count) {
    const caffe::NetParameter net = net_of(static_cast<float>(count));
    caffe::SolverState state;
    state.set_iter(count / 2);
    if (!writer.write({count / 2, net, state, "", kOwner.model})) ::_exit(1);
    if (::write(pipe, &count, sizeof(count)) < 0) ::_exit(1);
  }
}

TEST_CASE("Killed at any moment, a writer leaves a checkpoint at least as new as the last whole") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({20261121})));
  CAPTURE(seed);
  Random random(seed);
  for (int round = 0; round < 40; ++round) {
    const Place place;
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) write_for_ever(place, ends[1]);
    ::close(ends[1]);
    std::int32_t done = 0;
    REQUIRE(::read(ends[0], &done, sizeof(done)) == sizeof(done));
    ::usleep(static_cast<useconds_t>(random.below(20000)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(ends[0], &done, sizeof(done)) == sizeof(done)) {
    }
    ::close(ends[0]);
    const auto saved = place.newest();
    REQUIRE(saved);
    INFO("round " << round << ", " << done << " were written");
    CHECK(saved->model.layer(0).blobs(0).data(0) >= static_cast<float>(done));
    CHECK(saved->model.layer(0).blobs(0).data(0) <= static_cast<float>(done + 1));
  }
}

TEST_CASE("The seed to go on with is that of the job's last training") {
  Place place;
  const TrainingId first{1, 1}, second{2, 2};
  place.solver.set_random_seed(5);
  write(*place.writer_of(second), 10);
  place.solver.set_random_seed(6);
  write(*place.writer_of(first), 20);
  CHECK(seed_of_newest(place.prefix(), "job") == 6);
  REQUIRE(write_training_file(training_file(place.prefix(), "job"), second));
  CHECK(seed_of_newest(place.prefix(), "job") == 5);
  REQUIRE(write_training_file(training_file(place.prefix(), "job"), {3, 3}));
  CHECK_FALSE(seed_of_newest(place.prefix(), "job"));
  CHECK_FALSE(seed_of_newest(place.prefix(), "other"));
  CHECK(seed_of_record(record_path(place.prefix(), 10).string()) == 5);
  CHECK(seed_of_record(record_path(place.prefix(), 20).string()) == 6);
  CHECK_FALSE(seed_of_record(record_path(place.prefix(), 30).string()));
}

TEST_CASE("A training removes what a killed one left of another iteration's files") {
  Place place;
  const std::string left = ".speedo-tmp-" + std::string(16, 'a');
  overwrite(place.file(10, ".caffemodel" + left), "half");
  overwrite(place.prefix() + ".training" + left, "of nothing that is swept");
  place.writer_of({1, 1});
  CHECK(place.names() == std::set<std::string>{"net.training" + left, "net.job.training"});
}

TEST_CASE("An error that training can be gone on after names the newest checkpoint file") {
  Place place;
  CHECK(way_on(place.prefix(), "job") ==
        "; there is no checkpoint file of this training to go on from");
  write(*place.writer_of({2, 2}), 30);
  write(*place.writer_of({1, 1}), 10);
  write(*place.writer_of({1, 1}), 20);
  CHECK(way_on(place.prefix(), "job") == "; --resume=auto goes on from '" +
                                             place.file(20, ".speedo").string() +
                                             "', its newest checkpoint file");
  CHECK(way_on(place.prefix(), "job", true) == "; --resume='" +
                                                   place.file(20, ".speedo").string() +
                                                   "' goes on from the newest checkpoint file");
  CHECK_FALSE(newest_record(place.prefix(), "other").has_value());
}

TEST_CASE("a checkpoint of one process says where in the data its training goes on") {
  const Place place;
  MasterOptions before;
  before.session.first_step = 99;
  MasterOptions options = before;
  const auto writer = place.writer_of({1, 2});
  REQUIRE(write_of("", *writer, 10));
  go_on_from(*place.newest(), options);
  CHECK(options.session.first_step == 10);
  TrainCheckpoints own(place.solver, {}, [] { return false; });
  own.set_owner(kOwner);
  REQUIRE(own.begin({1, 2}, 5));  // behind a cluster's
  caffe::SolverState state;
  state.set_iter(20);
  REQUIRE(own.write(20, net_of(1.0F), state));
  go_on_from(*place.newest(), options);
  CHECK(options.session.first_step == 25);
  CHECK(data_step_of_state(place.file(20, ".solverstate")) == 25);
  go_on_from_instead(std::nullopt, before, options);
  CHECK(options.session.first_step == 99);
}

TEST_CASE("where a cluster was in the data is in its session; of a damaged one it is guessed") {
  MasterConfig config;
  config.first_step = 40;
  record::CheckpointFile record;
  record.set_iteration(10);
  record.set_session(MasterSession(config).save());
  CHECK(data_step_of(record) == 40);
  record.set_session("of an earlier version");
  CHECK(data_step_of(record) == 10);
}

}  // namespace
}  // namespace speedo
