// Two masters of one training that write the same checkpoint: one that stood still and goes on does
// not know yet that the other one has the job.

#include <chrono>
#include <filesystem>
#include <functional>

#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/passed_on_files.hpp"
#include "checkpoint/resume.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

// This machine's files, of a process that stands still once before a change of them.
class PausingFiles : public test::PassedOnFiles {
 public:
  Result<void> write(const fs::path& file, std::span<const std::byte> bytes) override {
    step();
    return PassedOnFiles::write(file, bytes);
  }
  Result<void> rename(const fs::path& from, const fs::path& to) override {
    step();
    return PassedOnFiles::rename(from, to);
  }
  Result<void> remove(const fs::path& file) override {
    step();
    return PassedOnFiles::remove(file);
  }
  Result<void> write_model(const fs::path& file, const caffe::NetParameter& net,
                           Format format) override {
    step();
    return PassedOnFiles::write_model(file, net, format);
  }
  Result<void> write_state(const fs::path& file, const caffe::SolverState& state,
                           Format format) override {
    step();
    return PassedOnFiles::write_state(file, state, format);
  }

  // Before the change after so many.
  void pause(int steps, std::function<void()> meanwhile) {
    left_ = steps;
    meanwhile_ = std::move(meanwhile);
  }

 private:
  void step() {
    if (meanwhile_ && left_-- == 0) std::exchange(meanwhile_, nullptr)();
  }

  int left_ = 0;
  std::function<void()> meanwhile_;
};

struct Masters {
  static constexpr TrainingId kTraining{1, 7};
  TempDir folder;
  caffe::SolverParameter solver;
  PausingFiles files;
  std::unique_ptr<CheckpointWriter> earlier;

  Masters() {
    solver.set_snapshot_prefix((folder / "net").string());
    earlier = writer(files);
  }
  std::unique_ptr<CheckpointWriter> writer(CheckpointFiles& disk) const {
    auto made = std::make_unique<CheckpointWriter>(solver, "job", RotationRules{}, disk);
    REQUIRE(made->begin(kTraining));
    return made;
  }
  // `value`: of all weights and histories.
  static Result<void> write(CheckpointWriter& writer, std::uint64_t term, std::int64_t iteration,
                            float value) {
    record::Session session;
    session.set_stage_count(1);
    session.set_term(term);
    caffe::NetParameter net;
    net.add_layer()->add_blobs()->add_data(value);
    caffe::SolverState state;
    state.set_iter(static_cast<std::int32_t>(iteration));
    state.add_history()->add_data(value);
    return writer.write({iteration, net, state, session.SerializeAsString(), Digest{1, 2}});
  }
  // Of iteration 10; its record.
  record::CheckpointFile write_first() const {
    REQUIRE(write(*earlier, 5, 10, 1.0F));
    auto record = read_record(record_path((folder / "net").string(), 10));
    REQUIRE(record);
    return *std::move(record);
  }
  bool has_unfinished() const {
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().filename().string().find(".new-") != std::string::npos) return true;
    }
    return false;
  }
};

TEST_CASE("A master that stands still in a checkpoint never mixes its files with its successor's") {
  const bool replaces = GENERATE(false, true);
  int paused = 0, given_up = 0;
  for (int steps = 0;; ++steps) {
    CAPTURE(replaces, steps);
    Masters masters;
    REQUIRE(Masters::write(*masters.earlier, 5, 10, 0.5F));
    if (replaces) REQUIRE(Masters::write(*masters.earlier, 5, 20, 0.75F));
    bool was_there = false;
    masters.files.pause(steps, [&] {
      was_there = true;
      const auto later = masters.writer(disk_files());
      REQUIRE(Masters::write(*later, 8, 20, 2.0F));
    });
    const auto written = Masters::write(*masters.earlier, 5, 20, 1.0F);
    if (!was_there) break;
    ++paused;
    const auto saved = newest_checkpoint((masters.folder / "net").string(),
                                         {"job", Digest{1, 2}}, Masters::kTraining);
    REQUIRE(saved);
    CHECK(saved->record.iteration() == 20);
    const float weights = saved->model.layer(0).blobs(0).data(0);
    CHECK(weights == saved->state.history(0).data(0));
    CHECK_FALSE(masters.has_unfinished());
    if (written) continue;
    ++given_up;
    INFO(written.error().message);
    CHECK(written.error().code == ErrorCode::kSuperseded);
    CHECK(weights == 2.0F);
  }
  // Two files, the record and two renames.
  CHECK(paused == 5);
  CHECK(given_up == 4);
}

TEST_CASE("What a killed master has not finished goes, or gets its name, when another begins") {
  Masters masters;
  const record::CheckpointFile record = masters.write_first();
  const fs::path model = masters.folder / "net_iter_10.caffemodel";
  const fs::path unfinished = masters.folder / ("net_iter_20.caffemodel" + new_suffix(record));
  const fs::path fresh = masters.folder / ("net_iter_30.caffemodel" + new_suffix(record));
  fs::copy_file(model, unfinished);
  fs::copy_file(model, fresh);
  fs::last_write_time(unfinished, fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::rename(model, model.string() + new_suffix(record));
  {
    const auto held = disk_files().hold(fresh);
    REQUIRE(held != nullptr);
    masters.writer(disk_files());
    CHECK(fs::exists(model));
    CHECK_FALSE(fs::exists(unfinished));
    CHECK(fs::exists(fresh));  // its writer may only stand still
  }
  masters.writer(disk_files());
  CHECK_FALSE(fs::exists(fresh));
}

TEST_CASE("What a killed master of another training has not finished goes an hour later") {
  Masters masters;
  const record::CheckpointFile record = masters.write_first();
  const fs::path model = masters.folder / "net_iter_10.caffemodel";
  const fs::path named = model.string() + new_suffix(record);
  const auto other = [&](const std::string& end) { return masters.folder / ("net_iter_" + end); };
  const fs::path killed = other("20.caffemodel.new-0000000000000009-5");
  const fs::path fresh = other("20.caffemodel.new-0000000000000009-6");
  const fs::path at_work = other("20.caffemodel.new-0000000000000009-7");
  const fs::path of_user = other("20.caffemodel.new-5");
  for (const fs::path& file : {killed, fresh, at_work, of_user}) fs::copy_file(model, file);
  fs::rename(model, named);
  for (const fs::path& file : {killed, at_work, of_user, named}) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const auto held = disk_files().hold(at_work);
  REQUIRE(held != nullptr);
  const bool is_there = GENERATE(false, true);
  CAPTURE(is_there);
  const fs::path before = fs::current_path();
  if (is_there) {
    fs::current_path(masters.folder.path());
    masters.solver.set_snapshot_prefix("net");
  }
  CheckpointWriter next(masters.solver, "job", {}, disk_files());
  const auto begun = next.begin({1, 8});
  fs::current_path(before);
  REQUIRE(begun);
  CHECK_FALSE(fs::exists(killed));
  CHECK(fs::exists(fresh));
  CHECK(fs::exists(at_work));
  CHECK(fs::exists(of_user));
  CHECK(fs::exists(named));
}

}  // namespace
}  // namespace speedo
