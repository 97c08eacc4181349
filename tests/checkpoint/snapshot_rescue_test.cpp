#include "checkpoint/snapshot_rescue.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/output_root.hpp"
#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/train_checkpoints.hpp"
#include "support/catch.hpp"
#include "support/file_size_limit.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

// A folder of its own for temporary files.
struct Scratch {
  Scratch() {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", folder.path().c_str(), 1);
  }
  ~Scratch() {
    if (before_.empty()) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", before_.c_str(), 1);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  // The files in folders of rescued snapshots.
  std::set<std::string> rescued() const {
    std::set<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
      if (entry.is_regular_file()) found.insert(entry.path().filename());
    }
    return found;
  }
  TempDir folder;
  std::string before_;
};

Result<void> full() { return Error{ErrorCode::kCannotWrite, "cannot write '/full/net': no room"}; }

// Writes a file with the number behind the prefix.
auto number(int value) {
  return [value](const std::string& prefix) -> Result<void> {
    std::ofstream(prefix + "_" + std::to_string(value)) << value;
    return {};
  };
}

TEST_CASE("A snapshot that cannot be written to its place is written elsewhere, and that is said") {
  const Scratch scratch;
  SnapshotRescue rescue("/full/net");
  const auto first = rescue.write(full, number(1));
  REQUIRE_FALSE(first);
  CHECK(first.error().code == ErrorCode::kCannotWrite);
  const std::string folder = (scratch.folder.path() / "speedo-rescue-").string();
  CHECK(first.error().message.find("cannot write '/full/net': no room; it is in '" + folder) == 0);
  CHECK(scratch.rescued() == std::set<std::string>{"net_1"});
}

TEST_CASE("The newest rescued snapshot is kept, until one has room again") {
  const Scratch scratch;
  SnapshotRescue rescue("/full/net");
  CHECK_FALSE(rescue.write(full, number(1)));
  CHECK_FALSE(rescue.write(full, number(2)));
  CHECK(scratch.rescued() == std::set<std::string>{"net_2"});
  const auto nowhere = rescue.write(full, [](const std::string& prefix) -> Result<void> {
    std::ofstream(prefix + "_half") << "x";
    return Error{ErrorCode::kCannotWrite, "no room there"};
  });
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message.find("nor elsewhere: no room there; an earlier one is in '") !=
        std::string::npos);
  CHECK(scratch.rescued() == std::set<std::string>{"net_2"});
  CHECK(rescue.write([] { return Result<void>(); }, number(3)));
  CHECK(fs::is_empty(scratch.folder.path()));
}

TEST_CASE("A snapshot whose name is too long is rescued by another one") {
  const Scratch scratch;
  SnapshotRescue rescue("/full/" + std::string(200, 'x'));
  CHECK_FALSE(rescue.write(full, number(1)));
  CHECK(scratch.rescued() == std::set<std::string>{"snapshot_1"});
}

TEST_CASE("A prefix that is too long for what its snapshots are called is refused at the start") {
  TempDir folder;
  const auto format = GENERATE(caffe::SolverParameter::BINARYPROTO, caffe::SolverParameter::HDF5);
  caffe::SolverParameter solver;
  solver.set_max_iter(1000);
  solver.set_snapshot_format(format);
  caffe::NetParameter net;
  net.add_layer()->set_name("ip");
  net.mutable_layer(0)->add_blobs()->add_data(1.0F);
  int refused = 0, written = 0;
  for (std::size_t letters = 100; letters < 255; letters += 5) {
    solver.set_snapshot_prefix((folder / std::string(letters, 'x')).string());
    CheckpointWriter writer(solver, "job", {});
    const auto checked = writer.check_writable();
    CHECK(fs::is_empty(folder.path()));
    if (!checked) {
      ++refused;
      CHECK(checked.error().code == ErrorCode::kCannotWrite);
      CHECK(checked.error().message.find("snapshot_prefix") != std::string::npos);
      continue;
    }
    ++written;
    INFO(letters);
    caffe::SolverState state;
    const std::string session;
    REQUIRE(writer.begin({1, ~std::uint64_t{0}}));
    REQUIRE(writer.write({1000, net, state, session, Digest{1, 2}}));
    for (const auto& entry : fs::directory_iterator(folder.path())) fs::remove(entry.path());
  }
  CHECK(refused > 5);
  CHECK(written > 5);
}

TEST_CASE("A last snapshot that no file can hold is an error, and not waited for") {
  const Scratch scratch;
  TempDir folder;
  caffe::SolverParameter solver;
  solver.set_max_iter(1);
  solver.set_snapshot_prefix((folder / "net").string());
  TrainCheckpoints checkpoints(solver, {}, [] { return false; });
  checkpoints.set_owner({"job", Digest{1, 2}});
  REQUIRE(checkpoints.begin({1, 2}, 0));
  caffe::NetParameter net;
  net.add_layer()->set_name("ip");
  for (int i = 0; i < 10000; ++i) net.mutable_layer(0)->add_blobs()->add_data(1.0F);
  caffe::SolverState state;
  const test::FileSizeLimit limit(1000);
  const auto written = checkpoints.write(1, net, state);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ErrorCode::kCannotWrite);
  CHECK(written.error().message.find("ulimit -f") != std::string::npos);
}

TEST_CASE("Only what cannot be written is rescued") {
  const Scratch scratch;
  SnapshotRescue rescue("net");
  const auto failed = rescue.write(
      [] {
        return Result<void>(Error{ErrorCode::kNotFinite, "diverged"});
      },
      number(1));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().message == "diverged");
  CHECK(fs::is_empty(scratch.folder.path()));
}

TEST_CASE("Links lead no snapshot out of the output root; the rescue is written beside it") {
  const Scratch scratch;
  TempDir folder;
  fs::create_directory(folder / "root");
  const auto root = OutputRoot::confine(folder / "root");
  REQUIRE(root);
  caffe::SolverParameter solver;
  solver.set_snapshot_prefix((folder / "root/net").string());
  caffe::NetParameter net;
  net.add_layer()->set_name("ip");
  net.mutable_layer(0)->add_blobs()->add_data(1.0F);
  for (const auto format : {caffe::SolverParameter::BINARYPROTO, caffe::SolverParameter::HDF5}) {
    solver.set_snapshot_format(format);
    const std::string end = format == caffe::SolverParameter::HDF5 ? ".h5" : "";
    for (const std::string& name :
         {".caffemodel" + end, ".solverstate" + end, std::string(".speedo")}) {
      INFO(name);
      const fs::path link = folder / ("root/net_iter_1" + name);
      fs::create_symlink("../taken", link);
      CheckpointWriter writer(solver, "job", {});
      REQUIRE(writer.begin({1, 2}));
      caffe::SolverState state;
      const std::string session;
      const auto written = writer.write_or_rescue({1, net, state, session, Digest{1, 2}});
      CHECK_FALSE(fs::exists(folder / "taken"));
      // Caffe's two take the place of links.
      REQUIRE(written.has_value() == (name != ".speedo"));
      if (written) {
        CHECK(fs::is_regular_file(fs::symlink_status(link)));
      } else {
        CHECK(written.error().code == ErrorCode::kCannotWrite);
        CHECK(written.error().message.find("'" + link.string() + "'") == 0);
        CHECK(scratch.rescued().contains("net_iter_1" + name));
      }
      for (const auto& entry : fs::directory_iterator(folder / "root")) fs::remove(entry.path());
    }
  }
}

}  // namespace
}  // namespace speedo
