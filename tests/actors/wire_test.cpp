// No message to or from another process is longer than it may be.
#include "actors/wire.hpp"

#include <string>

#include "support/catch.hpp"

#include <speedo/base/limits.hpp>

#include "master_under_test.hpp"
#include "worker_under_test.hpp"

namespace speedo {
namespace {

const std::string kHuge(100000, 'a');

}  // namespace

TEST_CASE("a peer's texts are cut before anything is done with them") {
  const LeaveMessage leave = clipped(LeaveMessage{3, 10, kHuge});
  CHECK(leave.worker == 3);
  CHECK(leave.code == 10);
  CHECK(leave.reason.size() == kTextMax);
  const HelloMessage hello = clipped(HelloMessage{.name = kHuge, .device = "two\nlines"});
  CHECK(hello.name.size() == kTextMax);
  CHECK(hello.device == "two lines");
}

TEST_CASE("what a worker says when it leaves reaches the master's error, cut") {
  test::Master master;
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  peer.tell(master.actor,
            LeaveMessage{worker, static_cast<std::uint32_t>(ErrorCode::kFull), kHuge});
  peer.die();
  REQUIRE(master.ends());
  const auto failure = master.end.wait();
  REQUIRE(failure);
  CHECK(failure->code == ErrorCode::kFull);
  CHECK(failure->message.size() <= kTextMax);
}

TEST_CASE("what a worker's run failed with leaves its process cut") {
  test::Worker worker;
  test::Peer master(worker.quiet);
  worker.admitted(master);
  master.tell(worker.actor, TrainMessage{.run = 1});
  REQUIRE(worker.work.runs.size() == 1);
  worker.work.runs.front().second(Error{ErrorCode::kData, kHuge});
  worker.quiet.run();
  const auto leave = master.take<LeaveMessage>();
  REQUIRE(leave);
  CHECK(leave->reason.size() == kTextMax);
}

TEST_CASE("the longest message that may be sent is within the limit") {
  const std::string text(kTextMax, 'x');
  WelcomeMessage welcome{.worker = 1, .store = text, .job = text};
  CHECK(content_bytes(welcome) >= 2 * kTextMax);
  CHECK(content_bytes(welcome) + kFramingBytes <= kMessageBytesMax);
}

}  // namespace speedo
