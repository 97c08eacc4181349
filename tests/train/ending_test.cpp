#include "train/session/ending.hpp"

#include <cerrno>
#include <chrono>

#include "base/write_fault.hpp"
#include "support/catch.hpp"
#include "train/session_parts.hpp"

namespace speedo {

namespace {

const Error kDiskFull{ErrorCode::kCannotWrite, "no space"};
const Error kLost{ErrorCode::kUnavailable, "no answer"};

// An end at iteration 8.
struct End {
  explicit End(Ending::Plan plan) : ending(std::move(plan)) {}
  std::string advance() {
    ending.request({8, true}, jobs, out);
    jobs.start_due({8, true, ending.last_test(8)}, out);
    return take_text(out);
  }
  bool complete() const { return ending.is_complete(jobs); }
  TestsAndSnapshots jobs{0};
  Ending ending;
  SessionCommands out;
};

Ending::Plan plan_with(bool test, bool snapshot, bool stopped = false) {
  return {"over", std::nullopt, test, snapshot, stopped};
}

}  // namespace

TEST_CASE("the last test comes first, then the last snapshot, each once") {
  End end(plan_with(true, true));
  CHECK(end.advance() == "test 8");
  CHECK(end.advance().empty());
  CHECK(!end.complete());
  end.jobs.tested({8, 0.5F, 1.0F});
  CHECK(end.advance() == "snapshot 8");
  CHECK(!end.complete());
  end.jobs.snapshot_done();
  CHECK(end.advance().empty());
  CHECK(end.complete());
  CHECK(!end.ending.plan().error);
}

TEST_CASE("weights that the last test finds diverged are not saved, and training fails") {
  End end(plan_with(true, true));
  end.advance();
  end.jobs.tested({8, 0.5F, 1.0F, true});
  CHECK(end.advance().empty());
  CHECK(end.complete());
  REQUIRE(end.ending.plan().error);
  CHECK(end.ending.plan().error->code == ErrorCode::kNotFinite);
}

TEST_CASE("a last test that fails is an error, and the snapshot is written nevertheless") {
  End end(plan_with(true, true));
  end.advance();
  end.jobs.test_failed();
  end.ending.last_test_failed(kLost, end.out);
  CHECK(end.advance() == "snapshot 8");
  CHECK(end.ending.plan().error->code == ErrorCode::kUnavailable);
}

TEST_CASE("a full disk is waited for until there is room, or somebody asks again to stop") {
  End end(plan_with(false, true));
  CHECK(end.advance() == "snapshot 8");
  end.jobs.snapshot_failed();
  end.ending.last_snapshot_failed(kDiskFull, 8, std::chrono::seconds(5), end.out);
  CHECK(end.advance().empty());
  CHECK(!end.complete());
  end.ending.retry(8, std::chrono::seconds(34), end.jobs);
  CHECK(end.advance().empty());
  end.ending.retry(8, std::chrono::seconds(35), end.jobs);
  CHECK(end.advance() == "snapshot 8");
  end.jobs.snapshot_failed();
  end.ending.last_snapshot_failed(kDiskFull, 8, std::chrono::seconds(36), end.out);
  end.ending.hurry(std::chrono::seconds(37), end.jobs);
  end.ending.retry(8, std::chrono::seconds(37), end.jobs);
  CHECK(end.advance() == "snapshot 8");
  end.jobs.snapshot_failed();
  end.ending.last_snapshot_failed(kDiskFull, 8, std::chrono::seconds(38), end.out);
  CHECK(end.advance().empty());
  CHECK(end.complete());
  CHECK(end.ending.plan().error->code == ErrorCode::kCannotWrite);
}

TEST_CASE("a snapshot that waiting does not help is an error at once") {
  for (const int reason : {EFBIG, ENAMETOOLONG}) {
    End end(plan_with(false, true));
    CHECK(end.advance() == "snapshot 8");
    end.jobs.snapshot_failed();
    end.ending.last_snapshot_failed({ErrorCode::kCannotWrite, write_fault(reason)}, 8, {}, end.out);
    CHECK(end.advance().empty());
    CHECK(end.complete());
    CHECK(end.ending.plan().error->code == ErrorCode::kCannotWrite);
  }
}

TEST_CASE("the first error stays; one that was stopped blames no store that is away") {
  End end(plan_with(false, false));
  end.ending.fail(kLost, end.out);
  end.ending.fail(kDiskFull, end.out);
  CHECK(end.ending.plan().error->code == ErrorCode::kUnavailable);
  CHECK(take_notes(end.out) == "no space\n");

  End stopped(plan_with(false, false, true));
  stopped.ending.fail(kLost, stopped.out);
  CHECK(!stopped.ending.plan().error);
  stopped.ending.fail(kDiskFull, stopped.out);
  CHECK(stopped.ending.plan().error->code == ErrorCode::kCannotWrite);
}

TEST_CASE("a last snapshot that the store keeps from being written is an error after a stop, too") {
  End end(plan_with(false, true, true));
  CHECK(end.advance() == "snapshot 8");
  end.jobs.snapshot_failed();
  end.ending.last_snapshot_failed({ErrorCode::kTimeout, "no answer"}, 8, {}, end.out);
  CHECK(end.advance().empty());
  CHECK(end.complete());
  REQUIRE(end.ending.plan().error);
  CHECK(end.ending.plan().error->code == ErrorCode::kUnavailable);
  CHECK(end.ending.plan().error->message ==
        "the snapshot of iteration 8 is not written: no answer");
}

TEST_CASE("workers are stopped, or sent to wait for the master that follows") {
  End over(plan_with(false, false));
  over.ending.send_away({3}, over.out);
  CHECK(take_text(over.out) == "stop 3");
  End lost({"the store is gone", kLost});
  lost.ending.send_away({3}, lost.out);
  CHECK(take_text(lost.out) ==
        fmt::format("refuse 3 code {}", static_cast<int>(ErrorCode::kUnavailable)));
}

}  // namespace speedo
