#include "train/session/membership.hpp"

#include <chrono>

#include "support/catch.hpp"
#include "train/session_parts.hpp"

namespace speedo {

namespace {

using Departure = Membership::Departure;

master_event::Hello hello_of(std::uint64_t peer, const std::string& name, std::uint64_t uuid = 0) {
  return {{peer}, {kProtocolVersion, name, "cpu", uuid, uuid}};
}

struct Door {
  Door() : config(config_for(1, 10)), members(config) {}
  explicit Door(MasterConfig config_in) : config(std::move(config_in)), members(config) {}
  bool hello(const master_event::Hello& hello, Instant now = {}) {
    if (members.turns_away(hello, now, out)) return false;
    members.admit(hello, now, out);
    return true;
  }
  bool ready(std::uint64_t worker) {
    return members.make_ready({worker}, {worker, config.model.high, config.model.low}, out);
  }
  MasterConfig config;
  Membership members;
  SessionCommands out;
};

}  // namespace

TEST_CASE("members are numbered in the order of joining, and no number comes again") {
  Door door;
  door.members.restore(5, 7, std::nullopt);
  CHECK(door.hello(hello_of(1, "a/1/0")));
  CHECK(door.hello(hello_of(2, "b/1/0")));
  CHECK(take_text(door.out) == "welcome 1 as 5; welcome 2 as 6");
  door.members.remove({6}, Departure::kExcused, {}, door.out);
  CHECK(door.hello(hello_of(2, "b/1/0")));
  CHECK(take_text(door.out) == "welcome 2 as 7");
  CHECK(door.members.next_worker() == 8);
  CHECK(door.members.joined() == 7);
  CHECK(door.ready(7));
  CHECK(door.members.joined() == 8);
  CHECK(door.members.ready_count() == 1);
}

TEST_CASE(
    "an earlier incarnation has the connection or the process of a Hello, and no uuid is no "
    "process") {
  Door door;
  door.hello(hello_of(1, "a/1/0", 9));
  door.hello(hello_of(2, "b/1/0"));
  CHECK(door.members.earlier_lives(hello_of(3, "a/1/0", 9)) == std::vector<WorkerId>{{0}});
  CHECK(door.members.earlier_lives(hello_of(2, "c/1/0", 8)) == std::vector<WorkerId>{{1}});
  CHECK(door.members.earlier_lives(hello_of(2, "c/1/0", 9)) == std::vector<WorkerId>{{0}, {1}});
  CHECK(door.members.earlier_lives(hello_of(3, "b/1/0")).empty());
}

TEST_CASE("a message counts only from the connection and for the worker that were admitted") {
  Door door;
  door.hello(hello_of(1, "a/1/0"));
  CHECK(door.members.sender({1}, 0, std::chrono::seconds(3)) == WorkerId{0});
  CHECK(door.members.find({0})->heard == std::chrono::seconds(3));
  CHECK(!door.members.sender({1}, 1, std::chrono::seconds(4)));
  CHECK(!door.members.sender({2}, 0, std::chrono::seconds(4)));
  CHECK(door.members.find({0})->heard == std::chrono::seconds(3));
  CHECK(door.members.at({1}) == WorkerId{0});
  door.members.remove({0}, Departure::kExcused, {}, door.out);
  CHECK(!door.members.at({1}));
  CHECK(door.members.find({0}) == nullptr);
}

TEST_CASE("another protocol, a full job and a host that is kept out are turned away") {
  MasterConfig config = config_for(1, 10);
  config.workers_max = 1;
  Door door(config);
  master_event::Hello old = hello_of(1, "a/1/0");
  old.message.protocol = kProtocolVersion - 1;
  CHECK(!door.hello(old));
  CHECK(door.hello(hello_of(1, "a/1/0")));
  CHECK(!door.hello(hello_of(2, "b/1/0")));
  const int mismatch = static_cast<int>(ErrorCode::kMismatch);
  const int unavailable = static_cast<int>(ErrorCode::kUnavailable);
  CHECK(take_text(door.out) ==
        fmt::format("refuse 1 code {}; welcome 1 as 0; refuse 2 code {}", mismatch, unavailable));
  std::uint64_t next = 0;
  for (int incarnation = 0; incarnation < kQuarantineAfter; ++incarnation) {
    door.members.remove({next++}, Departure::kFlap, {}, door.out);
    if (incarnation + 1 < kQuarantineAfter) CHECK(door.hello(hello_of(1, "a/1/0")));
  }
  CHECK(!door.hello(hello_of(1, "a/2/0")));
  CHECK(door.hello(hello_of(1, "b/1/0")));
  MasterProgress progress;
  door.members.show(progress);
  CHECK(progress.quarantined == 1);
}

TEST_CASE("a worker that finished a run, or is excused, does not count against its host") {
  Door door;
  for (std::uint64_t incarnation = 0; incarnation < 3 * kQuarantineAfter; ++incarnation) {
    REQUIRE(door.hello(hello_of(1, "a/1/0")));
    const bool finishes = incarnation % 2 == 0;
    if (finishes) door.members.finished_run({incarnation});
    door.members.remove({incarnation}, finishes ? Departure::kFlap : Departure::kExcused, {},
                        door.out);
  }
}

TEST_CASE("a worker of another model is refused and does not become ready") {
  Door door;
  door.hello(hello_of(1, "a/1/0"));
  take_text(door.out);
  CHECK(!door.members.make_ready({0}, {0, 1, 2}, door.out));
  CHECK(door.members.ready_count() == 0);
  CHECK(take_text(door.out) ==
        fmt::format("refuse 1 code {}", static_cast<int>(ErrorCode::kMismatch)));
}

TEST_CASE("a strategy meets those that are ready, each once, and a new one meets all") {
  Door door;
  for (std::uint64_t peer = 1; peer <= 3; ++peer)
    door.hello(hello_of(peer, fmt::format("h{}", peer)));
  door.ready(0);
  door.ready(2);
  Joined all = door.members.introduce_all();
  CHECK(all.workers == std::vector<WorkerId>{{0}, {2}});
  CHECK(all.names == std::vector<std::string>{"h1", "h3"});
  door.ready(1);
  CHECK(door.members.introduce({1}).workers == std::vector<WorkerId>{{1}});
  door.members.strategy_is_new();
  CHECK(door.members.introduce_all().workers.size() == 3);
}

TEST_CASE("groups are compared with the names and hosts of those that are ready") {
  Door door;
  door.hello(hello_of(1, "a/1/0"));
  door.hello(hello_of(2, "b/1/0"));
  door.hello(hello_of(3, "late/1/0"));
  door.ready(0);
  door.ready(1);
  take_notes(door.out);
  door.members.note_groups({}, door.out);
  CHECK(take_notes(door.out).empty());
  door.members.note_groups({{"a"}, {"b/1/0"}}, door.out);
  CHECK(take_notes(door.out).empty());
  door.members.note_groups({{"a"}, {"late"}}, door.out);
  CHECK(take_notes(door.out) ==
        "groups list workers that are not here: late\nworkers that no group lists: b/1/0\n");
}

TEST_CASE("workers that compute and workers that emulate it are never of one job") {
  const auto emulated = [](std::uint64_t peer) {
    master_event::Hello hello = hello_of(peer, "e/1/0");
    hello.message.device = kEmulatedDevice;
    return hello;
  };
  Door door;
  CHECK(door.hello(emulated(1)));
  CHECK(door.hello(emulated(2)));
  take_text(door.out);
  CHECK_FALSE(door.hello(hello_of(3, "a/1/0")));
  CHECK(take_text(door.out).find("refuse 3") != std::string::npos);
  // Nobody has done anything: another kind may begin.
  for (const std::uint64_t worker : {0U, 1U}) {
    door.members.remove({worker}, Departure::kExcused, {}, door.out);
  }
  CHECK(door.hello(hello_of(3, "a/1/0")));
  CHECK(door.ready(2));
  door.members.finished_run({2});
  door.members.remove({2}, Departure::kExcused, {}, door.out);
  CHECK_FALSE(door.hello(emulated(4)));
  // Nor under the next master.
  Door next;
  next.members.restore(5, 3, door.members.emulated());
  CHECK_FALSE(next.hello(emulated(5)));
  CHECK(next.hello(hello_of(6, "a/1/0")));
}

namespace {

master_event::Hello on_device(std::uint64_t peer, const std::string& device) {
  master_event::Hello hello = hello_of(peer, fmt::format("h{}/1/0", peer));
  hello.message.device = device;
  return hello;
}

}  // namespace

TEST_CASE("workers of a deterministic job compute on what the first does") {
  MasterConfig config = config_for(1, 10);
  config.same_devices = true;
  Door door(config);
  CHECK(door.hello(on_device(1, "gpu:0 A, tf32")));
  CHECK(door.hello(on_device(2, "gpu:11 A, tf32")));
  take_text(door.out);
  std::uint64_t peer = 3;
  for (const char* other : {"cpu", "gpu:0 A", "gpu:0 B, tf32", "gpu:0 A, bfloat16", "gpu:0"}) {
    CAPTURE(other);
    CHECK_FALSE(door.hello(on_device(peer, other)));
    CHECK(take_notes(door.out).find(fmt::format("refused: worker h{}/1/0 computes", peer)) == 0);
    ++peer;
  }
  // Nobody has done anything: another kind may begin, and stays.
  for (const std::uint64_t worker : {0U, 1U}) {
    door.members.remove({worker}, Departure::kExcused, {}, door.out);
  }
  CHECK(door.hello(on_device(9, "cpu")));
  CHECK(door.ready(2));
  door.members.finished_run({2});
  door.members.remove({2}, Departure::kExcused, {}, door.out);
  take_text(door.out);
  CHECK_FALSE(door.hello(on_device(10, "gpu:0 A, tf32")));
  CHECK(take_text(door.out) ==
        fmt::format("refuse 10 code {}", static_cast<int>(ErrorCode::kMismatch)));
  CHECK(door.hello(on_device(11, "cpu")));
}

TEST_CASE("workers compute on what the master does, where products are to have its bits") {
  MasterConfig config = config_for(1, 10);
  config.device = "gpu:1 A";
  Door door(config);
  CHECK(door.hello(on_device(1, "gpu:0 A")));
  CHECK(door.hello(on_device(2, kEmulatedDevice)) == false);  // others compute
  take_notes(door.out);
  CHECK_FALSE(door.hello(on_device(3, "cpu")));
  CHECK(take_notes(door.out).find("--no-factors") != std::string::npos);
  CHECK_FALSE(door.hello(on_device(4, "gpu:0 A, tf32")));
  config.device = "cpu";
  Door of_cpus(config);
  CHECK(of_cpus.hello(on_device(1, "cpu")));
  CHECK_FALSE(of_cpus.hello(on_device(2, "gpu:0 A")));
  Door emulated(config);
  CHECK(emulated.hello(on_device(1, kEmulatedDevice)));
  // Of others nothing is asked.
  Door open;
  CHECK(open.hello(on_device(1, "cpu")));
  CHECK(open.hello(on_device(2, "gpu:0 A")));
}

}  // namespace speedo
