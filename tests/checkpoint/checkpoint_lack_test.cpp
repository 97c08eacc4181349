// Checkpoints on a disk that is too small: what is given up for a new one, and what is left.

#include <filesystem>
#include <set>

#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/passed_on_files.hpp"
#include "checkpoint/resume.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr int kFloats = 1000;  // of a model, and of a history
constexpr std::uint64_t kModelBytes = 4 * kFloats;
constexpr std::uint64_t kAllBytes = 2 * kModelBytes + 600;  // of a checkpoint, at most

// This machine's files, in a folder that takes so many bytes.
class SmallDisk : public test::PassedOnFiles {
 public:
  explicit SmallDisk(fs::path folder) : folder_(std::move(folder)) {}

  Result<void> write(const fs::path& file, std::span<const std::byte> bytes) override {
    SPEEDO_TRY(admit(bytes.size()));
    SPEEDO_TRY(PassedOnFiles::write(file, bytes));
    if (!fails_late) return {};
    return Error{ErrorCode::kCannotWrite, "the folder cannot be synchronised"};
  }
  Result<void> write_model(const fs::path& file, const caffe::NetParameter& net,
                           Format format) override {
    SPEEDO_TRY(admit(net.ByteSizeLong()));
    return PassedOnFiles::write_model(file, net, format);
  }
  Result<void> write_state(const fs::path& file, const caffe::SolverState& state,
                           Format format) override {
    SPEEDO_TRY(admit(state.ByteSizeLong()));
    return PassedOnFiles::write_state(file, state, format);
  }

  std::uint64_t room = UINT64_MAX;
  bool fails_late = false;  // a file that is there, but may not survive a crash

 private:
  Result<void> admit(std::size_t bytes) const {
    std::uint64_t all = bytes;
    for (const auto& entry : fs::directory_iterator(folder_)) all += entry.file_size();
    if (all <= room) return {};
    return Error{ErrorCode::kCannotWrite, "No space left on device"};
  }

  const fs::path folder_;
};

struct SmallPlace {
  explicit SmallPlace(RotationRules rules = {}) : writer(solver(), "job", rules, disk) {}

  caffe::SolverParameter solver() const {
    caffe::SolverParameter solver;
    solver.set_snapshot_prefix((folder / "net").string());
    return solver;
  }
  Result<void> write(std::int64_t iteration, float value = 1.0F) {
    caffe::NetParameter net;
    caffe::SolverState state;
    caffe::BlobProto* weights = net.add_layer()->add_blobs();
    caffe::BlobProto* history = state.add_history();
    for (int i = 0; i < kFloats; ++i) {
      weights->add_data(value);
      history->add_data(value);
    }
    state.set_iter(static_cast<std::int32_t>(iteration));
    return writer.write({iteration, net, state, {}, Digest{1, 2}});
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      all.insert(entry.path().filename().string().substr(sizeof("net_iter_") - 1));
    }
    return all;
  }
  std::optional<std::uint64_t> newest() const {
    const auto saved =
        newest_checkpoint((folder / "net").string(), {"job", Digest{1, 2}}, std::nullopt);
    if (!saved) return std::nullopt;
    return saved->record.iteration();
  }

  TempDir folder;
  SmallDisk disk{folder.path()};
  CheckpointWriter writer;
};

std::set<std::string> three_of(const std::vector<int>& iterations) {
  std::set<std::string> all;
  for (const int iteration : iterations) {
    for (const char* end : {".caffemodel", ".solverstate", ".speedo"}) {
      all.insert(std::to_string(iteration) + end);
    }
  }
  return all;
}

TEST_CASE("Where there is room for what is kept alone the oldest goes before the newest comes") {
  SmallPlace place({2, false});
  place.disk.room = 2 * kAllBytes;
  for (int iteration = 1; iteration <= 5; ++iteration) {
    CAPTURE(iteration);
    const auto written = place.write(iteration);
    INFO((written ? "" : written.error().message));
    REQUIRE(written);
    CHECK(place.newest() == iteration);
  }
  CHECK(place.names() == three_of({4, 5}));
}

TEST_CASE("The last whole checkpoint stays, whatever does not fit beside it") {
  SmallPlace place({1, false});
  place.disk.room = kAllBytes + kModelBytes + 300;
  REQUIRE(place.write(1));
  for (const int iteration : {2, 3}) {
    CAPTURE(iteration);
    const auto refused = place.write(iteration);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kCannotWrite);
    CHECK(place.newest() == 1);
    // The weights of the last one, and of no earlier.
    std::set<std::string> expected = three_of({1});
    expected.insert(std::to_string(iteration) + ".caffemodel");
    CHECK(place.names() == expected);
  }
  place.disk.room = 2 * kAllBytes;
  REQUIRE(place.write(4));
  CHECK(place.names() == three_of({4}));
}

TEST_CASE("Without --keep-snapshots nothing is removed for a new checkpoint") {
  SmallPlace place;
  place.disk.room = 2 * kAllBytes;
  REQUIRE(place.write(1));
  REQUIRE(place.write(2));
  REQUIRE_FALSE(place.write(3));
  CHECK(place.names() == three_of({1, 2}));
}

TEST_CASE("A checkpoint that cannot be replaced stays, and nothing of the new one in the end") {
  SmallPlace place;
  place.disk.room = kAllBytes + kModelBytes + 300;
  REQUIRE(place.write(1));
  REQUIRE_FALSE(place.write(1, 2.0F));
  CHECK(place.newest() == 1);
  place.disk.room = UINT64_MAX;
  REQUIRE(place.write(2));
  CHECK(place.names() == three_of({1, 2}));
  REQUIRE(place.write(1, 3.0F));
  CHECK(place.names() == three_of({1, 2}));
}

TEST_CASE("A checkpoint whose record is there stays, although its writing failed") {
  SmallPlace place;
  place.disk.fails_late = true;
  REQUIRE_FALSE(place.write(1));
  CHECK(place.newest() == 1);
  REQUIRE_FALSE(place.write(1, 2.0F));
  CHECK(place.newest() == 1);
  place.disk.fails_late = false;
  REQUIRE(place.write(2));
  CHECK(place.names().contains("1.speedo"));
  fs::remove(place.folder / "net_iter_2.speedo");
  CHECK(place.newest() == 1);
}

}  // namespace
}  // namespace speedo
