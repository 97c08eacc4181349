#include "checkpoint/snapshot_room.hpp"

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

TEST_CASE("As many snapshots are counted as will lie side by side") {
  CHECK(snapshots_at_once(0, 1000, 0, {}) == 1);
  CHECK(snapshots_at_once(0, 1000, 100, {}) == 10);
  CHECK(snapshots_at_once(0, 1050, 100, {}) == 11);
  CHECK(snapshots_at_once(500, 1000, 100, {}) == 5);
  CHECK(snapshots_at_once(1000, 1000, 100, {}) == 1);
  // The new one, before an old one goes.
  CHECK(snapshots_at_once(0, 1000, 100, {3, false}) == 4);
  CHECK(snapshots_at_once(0, 1000, 100, {3, true}) == 5);
  CHECK(snapshots_at_once(0, 1000, 100, {9, true}) == 10);
  CHECK(snapshots_at_once(0, 200, 100, {3, true}) == 2);
  CHECK(snapshots_at_once(0, 1000, 100, {UINT64_MAX, true}) == 10);
}

TEST_CASE("A snapshot takes the weights and all histories of the solver's rule") {
  const auto bytes = [](const char* type, bool diff) {
    caffe::SolverParameter solver;
    solver.set_type(type);
    solver.set_base_lr(0.1F);
    solver.set_momentum(0.9F);
    solver.set_lr_policy("fixed");
    solver.set_snapshot_diff(diff);
    return snapshot_bytes(100, solver).value();
  };
  CHECK(bytes("SGD", false) == 200);
  CHECK(bytes("SGD", true) == 300);
  CHECK(bytes("Nesterov", false) == 200);
  caffe::SolverParameter unknown;
  unknown.set_type("Unheard");
  CHECK_FALSE(snapshot_bytes(100, unknown));
}

TEST_CASE("A folder without room for one snapshot is refused, with both figures") {
  const auto judged = judge_snapshot_room("/data/snaps", (5 << 20) - 1, {5 << 20, 1});
  REQUIRE_FALSE(judged);
  CHECK(judged.error().code == ErrorCode::kCannotWrite);
  CHECK(judged.error().message ==
        "a snapshot takes 5.0 MiB, and 5.0 MiB are free in '/data/snaps': make room, or change "
        "snapshot_prefix in the solver");
  CHECK(judge_snapshot_room("/data/snaps", 5 << 20, {5 << 20, 1}));
  CHECK(judge_snapshot_room("/data/snaps", 5 << 20, {5 << 20, 100}));  // a warning
  CHECK(judge_snapshot_room("/data/snaps", 0, {0, 1}));
}

TEST_CASE("The folder of a prefix is looked at, and no more than it can hold is asked for") {
  const TempDir folder;
  CHECK(check_snapshot_room((folder / "net").string(), {1, 1}));
  CHECK_FALSE(check_snapshot_room((folder / "net").string(), {INT64_MAX, 1}));
  CHECK(check_snapshot_room((folder / "gone" / "net").string(), {INT64_MAX, 1}));
}

}  // namespace
}  // namespace speedo
