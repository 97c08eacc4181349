#include "support/catch.hpp"

#include <bit>
#include <limits>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>
#include <speedo/train/worker_session.hpp>

namespace speedo {

namespace {

std::string to_text(const worker_command::Connect&) { return "connect"; }
std::string to_text(const worker_command::SendHello& c) { return "hello " + c.message.name; }
std::string to_text(const worker_command::SendReady& c) {
  return fmt::format("ready {} {}:{}", c.message.worker, c.message.model_high,
                     c.message.model_low);
}
std::string to_text(const worker_command::SendTrained& c) {
  return fmt::format("trained {} run {} base {}", c.message.worker, c.message.run,
                     c.message.base_version);
}
std::string to_text(const worker_command::SendLeave& c) {
  return fmt::format("leave {} code {}", c.message.worker, c.message.code);
}
std::string to_text(const worker_command::SendBeat& c) {
  if (c.message.run == kNoRun) return fmt::format("beat {} idle", c.message.worker);
  return fmt::format("beat {} run {} at {}", c.message.worker, c.message.run, c.message.progress);
}
std::string to_text(const worker_command::PrepareJob& c) { return "prepare " + c.welcome.job; }
std::string to_text(const worker_command::StartRun& c) {
  return fmt::format("run {} of {}", c.order.run, c.worker.value);
}
std::string to_text(const worker_command::SendStateSaved& c) {
  return "saved " + std::to_string(c.message.iteration) + " code " + std::to_string(c.message.code);
}
std::string to_text(const worker_command::SaveState& c) {
  return "save " + std::to_string(c.order.iteration);
}
std::string to_text(const worker_command::LookForEnd& c) {
  return fmt::format("look {}", c.term);
}
std::string to_text(const worker_command::CancelRun&) { return "cancel"; }
std::string to_text(const worker_command::Note&) { return {}; }
std::string to_text(const worker_command::Exit& c) {
  return c.error ? fmt::format("exit code {}", static_cast<int>(c.error->code)) : "exit";
}

std::string code(ErrorCode error) { return std::to_string(static_cast<int>(error)); }

struct WorkerDriver {
  explicit WorkerDriver(std::uint64_t seed = 1, int connect_timeout = 0)
      : session({"w", "cpu", "m:1", 21, 22, seed, std::chrono::seconds(connect_timeout)}) {}

  // Beats, and looks for the job's end, have tests of their own.
  std::string on(const WorkerEvent& event) {
    std::string text;
    for (const WorkerCommand& command : session.on(event)) {
      if (const auto* beat = std::get_if<worker_command::SendBeat>(&command)) {
        beats.push_back(to_text(*beat));
        continue;
      }
      if (const auto* look = std::get_if<worker_command::LookForEnd>(&command)) {
        looks.push_back(look->term);
        continue;
      }
      if (const auto* note = std::get_if<worker_command::Note>(&command)) {
        notes.push_back(note->text);
        continue;
      }
      if (const auto* c = std::get_if<worker_command::Exit>(&command)) error = c->error;
      const std::string one = std::visit([](const auto& c) { return to_text(c); }, command);
      text += (text.empty() ? "" : "; ") + one;
    }
    return text;
  }
  std::string tick(std::int64_t milliseconds, std::uint64_t progress = 0) {
    now = milliseconds;
    return on(worker_event::Tick{std::chrono::milliseconds(milliseconds), progress});
  }
  std::string connected() { return on(worker_event::Connected{}); }
  std::string welcome(std::uint64_t worker, const std::string& job = "job") {
    return on(worker_event::Welcome{{worker, "store", job, 3, 4, 5}});
  }
  std::string prepared() { return on(worker_event::JobPrepared{{3, 4}}); }
  std::string order(std::uint64_t run) {
    TrainMessage message;
    message.run = run;
    return on(worker_event::TrainOrdered{message});
  }
  std::string done(std::uint64_t run, float loss = 1.0F) {
    return on(worker_event::RunDone{{{run}, loss, {9}, 10, {}, {}}});
  }
  // Milliseconds from now until the next Connect.
  std::int64_t wait() {
    const std::int64_t from = now;
    for (std::int64_t at = from; at <= from + 20000; ++at) {
      if (tick(at) == "connect") return at - from;
    }
    return -1;
  }
  void join(std::uint64_t worker = 0) {
    tick(0);
    connected();
    welcome(worker);
    prepared();
  }

  WorkerSession session;
  std::int64_t now = 0;
  std::vector<std::uint64_t> looks;   // terms
  std::vector<std::string> notes, beats;
  std::optional<Error> error;
};

}  // namespace

TEST_CASE("a worker connects, is welcomed, prepares, trains") {
  WorkerDriver worker;
  CHECK(worker.tick(0) == "connect");
  CHECK(worker.tick(1).empty());
  CHECK(worker.connected() == "hello w");
  CHECK(worker.welcome(4) == "prepare job");
  CHECK(worker.prepared() == "ready 4 3:4");
  CHECK(worker.order(10) == "run 10 of 4");
  CHECK(worker.done(10) == "trained 4 run 10 base 9");
  CHECK(worker.order(12) == "run 12 of 4");
}

TEST_CASE("a loss that is not finite is reported as it is") {
  WorkerDriver worker;
  worker.join();
  worker.order(0);
  const auto commands = worker.session.on(worker_event::RunDone{
      {{0}, -std::numeric_limits<float>::infinity(), {0}, 1, {2, 3, 4, 5, 6}, {7, 8}, {}, {},
       {9, 10}}});
  const auto& message = std::get<worker_command::SendTrained>(commands.at(0)).message;
  CHECK(message.loss_bits == 0xFF800000U);
  CHECK(message.phases == PhaseTimes{2, 3, 4, 5, 6});
  CHECK(message.traffic == Traffic{7, 8});
  CHECK(message.read_faults == ReadFaults{9, 10});
}

TEST_CASE("without a master a worker waits longer each time, up to the maximum, and says so") {
  WorkerDriver worker;
  worker.tick(0);
  std::int64_t whole = kReconnectFirst.count();
  for (int attempt = 0; attempt < 12; ++attempt) {
    CHECK(worker.on(worker_event::ConnectFailed{"refused"}).empty());
    const std::int64_t wait = worker.wait();
    CHECK(wait >= whole / 2);
    CHECK(wait <= whole + 1);
    whole = std::min<std::int64_t>(2 * whole, kReconnectMax.count());
  }
  CHECK(worker.notes.size() == 12);
  CHECK(worker.notes[0].find("refused; attempt 2 to reach the master at m:1 in 0.1 s") == 0);
}

TEST_CASE("waits depend on the seed, and on nothing else") {
  const auto waits = [](std::uint64_t seed) {
    WorkerDriver worker(seed);
    worker.tick(0);
    std::vector<std::int64_t> all;
    for (int i = 0; i < 6; ++i) {
      worker.on(worker_event::ConnectFailed{"x"});
      all.push_back(worker.wait());
    }
    return all;
  };
  CHECK(waits(1) == waits(1));
  CHECK(waits(1) != waits(2));
}

TEST_CASE("no master within connect_timeout: the end, saying where and what to check") {
  WorkerDriver worker(1, 3);
  worker.tick(0);
  worker.on(worker_event::ConnectFailed{"connection refused"});
  CHECK(worker.wait() > 0);
  CHECK(worker.tick(2999).empty());
  CHECK(worker.tick(3000) == "exit code " + code(ErrorCode::kUnavailable));
  CHECK(worker.error->message.find("m:1") != std::string::npos);
  CHECK(worker.error->message.find("connection refused") != std::string::npos);
  CHECK(worker.error->message.find("check") != std::string::npos);
  CHECK(worker.connected().empty());
}

TEST_CASE("connect_timeout counts anew when the master is lost, not while there is one") {
  WorkerDriver worker(1, 3);
  worker.join();
  worker.order(0);
  CHECK(worker.tick(60000).empty());
  worker.on(worker_event::MasterLost{"reset"});
  worker.wait();
  worker.tick(62999);
  CHECK(worker.tick(63000) == "exit code " + code(ErrorCode::kUnavailable));
}

TEST_CASE("the master lost during a run: cancelled, and a new incarnation begins") {
  WorkerDriver worker;
  worker.join(3);
  worker.order(7);
  CHECK(worker.on(worker_event::MasterLost{"reset"}) == "cancel");
  CHECK(worker.done(7).empty());
  CHECK(worker.wait() > 0);
  CHECK(worker.connected() == "hello w");
  CHECK(worker.welcome(0) == "prepare job");   // a restarted master counts from 0
  CHECK(worker.prepared() == "ready 0 3:4");
  CHECK(worker.order(5) == "run 5 of 0");
}

TEST_CASE("the master lost in every state leads back to it") {
  WorkerDriver worker;
  worker.tick(0);
  CHECK(worker.on(worker_event::MasterLost{"x"}).empty());     // connecting: its answer is due
  CHECK(worker.connected() == "hello w");
  worker.on(worker_event::MasterLost{"x"});                    // greeting
  CHECK(worker.wait() > 0);
  worker.connected();
  worker.welcome(1);
  worker.on(worker_event::MasterLost{"x"});                    // preparing
  CHECK(worker.prepared().empty());
  CHECK(worker.wait() > 0);
  CHECK(worker.on(worker_event::MasterLost{"x"}).empty());
  CHECK(worker.connected() == "hello w");
}

TEST_CASE("the answer to an earlier PrepareJob is not taken for the last one's") {
  WorkerDriver worker;
  worker.tick(0);
  worker.connected();
  CHECK(worker.welcome(1, "old") == "prepare old");
  worker.on(worker_event::MasterLost{"x"});
  worker.wait();
  worker.connected();
  CHECK(worker.welcome(0, "new") == "prepare new");
  CHECK(worker.on(worker_event::JobFailed{{ErrorCode::kNotFound, "old job"}}).empty());
  CHECK(worker.prepared() == "ready 0 3:4");
}

TEST_CASE("the later of two welcomes counts") {
  WorkerDriver worker;
  worker.join(0);
  worker.order(3);
  CHECK(worker.welcome(0).empty());
  CHECK(worker.welcome(1) == "cancel; prepare job");
  CHECK(worker.prepared() == "ready 1 3:4");
}

TEST_CASE("refused for good: the end with the master's code; for now: another attempt") {
  WorkerDriver worker;
  worker.tick(0);
  worker.connected();
  const auto transient = static_cast<std::uint32_t>(ErrorCode::kTimeout);
  CHECK(worker.on(worker_event::Refused{{transient, "frozen"}}).empty());
  CHECK(worker.wait() > 0);
  worker.connected();
  const auto mismatch = static_cast<std::uint32_t>(ErrorCode::kMismatch);
  CHECK(worker.on(worker_event::Refused{{mismatch, "other model"}}) ==
        "exit code " + code(ErrorCode::kMismatch));
  CHECK(worker.error->message.find("other model") != std::string::npos);
}

TEST_CASE("put out during a run: cancelled, then another attempt") {
  WorkerDriver worker;
  worker.join();
  worker.order(0);
  const auto transient = static_cast<std::uint32_t>(ErrorCode::kTimeout);
  CHECK(worker.on(worker_event::Refused{{transient, "too slow"}}) == "cancel");
  CHECK(worker.wait() > 0);
}

TEST_CASE(
    "a job that cannot be prepared: with bad data the end, with the store away a new incarnation") {
  WorkerDriver worker;
  worker.tick(0);
  worker.connected();
  worker.welcome(1);
  CHECK(worker.on(worker_event::JobFailed{{ErrorCode::kUnavailable, "redis away"}}) ==
        "leave 1 code " + code(ErrorCode::kUnavailable));
  CHECK(worker.wait() > 0);
  worker.connected();
  worker.welcome(2);
  CHECK(worker.on(worker_event::JobFailed{{ErrorCode::kData, "no lmdb"}}) ==
        "leave 2 code " + code(ErrorCode::kData) + "; exit code " + code(ErrorCode::kData));
  CHECK(worker.error->message == "no lmdb");
}

TEST_CASE("a store that stays away while the job is prepared counts as no master") {
  WorkerDriver worker(1, 3);
  worker.tick(0);
  worker.connected();
  worker.welcome(1);
  CHECK(worker.tick(10000).empty());   // a net may take its time
  worker.on(worker_event::JobFailed{{ErrorCode::kUnavailable, "redis away"}});
  CHECK(worker.tick(10001) == "exit code " + code(ErrorCode::kUnavailable));
  CHECK(worker.error->message.find("redis away") != std::string::npos);
}

TEST_CASE("hello names this worker for as long as its process lives") {
  WorkerDriver worker;
  worker.tick(0);
  for (int incarnation = 0; incarnation < 2; ++incarnation) {
    const auto commands = worker.session.on(worker_event::Connected{});
    const auto& message = std::get<worker_command::SendHello>(commands.at(0)).message;
    CHECK(message.uuid_high == 21);
    CHECK(message.uuid_low == 22);
    worker.on(worker_event::MasterLost{"x"});
    CHECK(worker.wait() > 0);
  }
}

TEST_CASE("a hello that is not answered leads to another attempt") {
  WorkerDriver worker;
  worker.tick(0);
  worker.tick(50);
  worker.connected();
  CHECK(worker.tick(50 + kAnswerTimeout.count() - 1).empty());
  CHECK(worker.notes.empty());
  worker.tick(50 + kAnswerTimeout.count());
  CHECK(worker.notes.at(0).find("has not answered for 5 s") != std::string::npos);
  CHECK(worker.welcome(3).empty());    // too late
  CHECK(worker.wait() > 0);
  CHECK(worker.connected() == "hello w");
}

TEST_CASE("ready is repeated until the first order, and not after it") {
  WorkerDriver worker;
  worker.join(3);
  const std::int64_t pause = kAnswerTimeout.count();
  CHECK(worker.tick(pause - 1).empty());
  CHECK(worker.tick(pause) == "ready 3 3:4");
  CHECK(worker.tick(pause + 1).empty());
  CHECK(worker.tick(2 * pause) == "ready 3 3:4");
  worker.order(0);
  worker.done(0);
  CHECK(worker.tick(10 * pause).empty());
}

TEST_CASE("an admitted worker beats, with its run and how far it is") {
  WorkerDriver worker;
  worker.tick(0);
  worker.connected();
  worker.tick(2000);
  CHECK(worker.beats.empty());
  worker.welcome(4);
  worker.tick(2100);
  CHECK(worker.beats.empty());
  worker.tick(2500);                   // while the net is being built
  worker.prepared();
  worker.order(9);
  worker.tick(2999);
  worker.tick(3000, 17);
  worker.tick(3500, 18);
  worker.done(9);
  worker.tick(4000, 18);
  CHECK(worker.beats == std::vector<std::string>{"beat 4 idle", "beat 4 run 9 at 17",
                                                 "beat 4 run 9 at 18", "beat 4 idle"});
  worker.on(worker_event::MasterLost{"x"});
  worker.tick(4001);
  worker.tick(9000);
  CHECK(worker.beats.size() == 4);
}

TEST_CASE("a worker that was admitted before connects more often, and starts to count anew") {
  WorkerDriver worker;
  worker.tick(0);
  for (int i = 0; i < 8; ++i) {
    worker.on(worker_event::ConnectFailed{"refused"});
    worker.wait();
  }
  worker.connected();
  worker.welcome(0);
  worker.on(worker_event::MasterLost{"reset"});
  CHECK(worker.wait() <= kReconnectFirst.count() + 1);
  for (int i = 0; i < 8; ++i) {
    worker.on(worker_event::ConnectFailed{"refused"});
    CHECK(worker.wait() <= kReconnectLost.count() + 1);
  }
}

TEST_CASE("a run that fails: with the store away a new incarnation, with bad data the end") {
  WorkerDriver worker;
  worker.join(2);
  worker.order(0);
  CHECK(worker.on(worker_event::RunFailed{{0}, {ErrorCode::kUnavailable, "redis away"}}) ==
        "leave 2 code " + code(ErrorCode::kUnavailable));
  CHECK(worker.wait() > 0);
  worker.connected();
  worker.welcome(3);
  worker.prepared();
  worker.order(1);
  CHECK(worker.on(worker_event::RunFailed{{0}, {ErrorCode::kData, "late"}}).empty());
  CHECK(worker.on(worker_event::RunFailed{{1}, {ErrorCode::kData, "label 11"}}) ==
        "leave 3 code " + code(ErrorCode::kData) + "; exit code " + code(ErrorCode::kData));
}

TEST_CASE("a worker that the store fails again and again says that it joins again, now and then") {
  WorkerDriver worker;
  worker.join(0);
  const std::size_t before = worker.notes.size();
  const auto fail = [&](std::uint64_t run) {
    worker.order(run);
    worker.on(worker_event::RunFailed{{run}, {ErrorCode::kUnavailable, "OOM"}});
    REQUIRE(worker.wait() > 0);
    worker.connected();
    worker.welcome(run + 1);
    worker.prepared();
  };
  for (std::uint64_t run = 0; run < 8; ++run) fail(run);
  REQUIRE(worker.notes.size() == before + 2);  // and that it is admitted
  CHECK(worker.notes[before].find("run 0: OOM; this worker joins its master again") == 0);
  worker.tick(worker.now + std::chrono::milliseconds(kWaitingNoteInterval).count());
  fail(8);
  CHECK(worker.notes.size() == before + 4);
  worker.on(worker_event::MasterLost{"reset"});
  CHECK(worker.notes.back().find("to reach the master") != std::string::npos);
}

TEST_CASE("orders out of turn are ignored, a newer one replaces a run") {
  WorkerDriver worker;
  worker.tick(0);
  worker.connected();
  CHECK(worker.order(0).empty());
  worker.welcome(0);
  CHECK(worker.order(0).empty());
  worker.prepared();
  CHECK(worker.order(4) == "run 4 of 0");
  CHECK(worker.order(4).empty());
  CHECK(worker.order(3).empty());
  CHECK(worker.order(5) == "cancel; run 5 of 0");
  CHECK(worker.done(4).empty());
  CHECK(worker.done(5) == "trained 0 run 5 base 9");
  CHECK(worker.done(5).empty());
  CHECK(worker.order(5).empty());
}

TEST_CASE("a state is saved once, however often it is ordered meanwhile") {
  WorkerDriver worker;
  worker.join();
  const auto ordered = [&](std::uint64_t iteration) {
    return worker.on(worker_event::SaveOrdered{{.worker = 0, .iteration = iteration}});
  };
  const auto saved = [&](std::uint64_t iteration) {
    const SaveStateMessage order{.worker = 0, .iteration = iteration};
    return worker.on(worker_event::StateSaved{order, std::nullopt});
  };
  CHECK(ordered(10) == "save 10");
  CHECK(ordered(10).empty());
  CHECK(saved(10) == "saved 10 code 0");
  // The snapshot is tried again.
  CHECK(ordered(10) == "save 10");
  CHECK(ordered(20) == "save 20");
  CHECK(saved(10) == "saved 10 code 0");
  CHECK(ordered(20).empty());
  CHECK(saved(20) == "saved 20 code 0");
}

TEST_CASE("a worker that has lost its master asks whether the job is over, once at a time") {
  WorkerDriver worker;
  worker.tick(0);
  worker.on(worker_event::ConnectFailed{"refused"});
  CHECK(worker.looks.empty());                        // it was never admitted
  worker.wait();
  worker.connected();
  worker.welcome(0);
  worker.on(worker_event::MasterLost{"reset"});
  CHECK(worker.looks == std::vector<std::uint64_t>{5});
  worker.wait();
  worker.on(worker_event::ConnectFailed{"refused"});
  CHECK(worker.looks.size() == 1);
  CHECK(worker.on(worker_event::EndLookedFor{false}).empty());
  worker.wait();
  worker.on(worker_event::ConnectFailed{"refused"});
  CHECK(worker.looks.size() == 2);
  SECTION("it is") {
    CHECK(worker.on(worker_event::EndLookedFor{true}) == "cancel; exit");
    CHECK(!worker.error);
  }
  SECTION("it was, but another master has admitted it since") {
    worker.wait();
    worker.connected();
    CHECK(worker.on(worker_event::EndLookedFor{true}).empty());
    CHECK(worker.welcome(1) == "prepare job");
  }
}

TEST_CASE("what was contributed and not merged is taken back once the job is over") {
  WorkerDriver worker;
  worker.join();
  worker.order(0);
  worker.done(0);
  CHECK(worker.on(worker_event::MasterLost{"reset"}).find("cancel") == std::string::npos);
  SECTION("by what the store says") {
    CHECK(worker.on(worker_event::EndLookedFor{true}) == "cancel; exit");
  }
  SECTION("by what the master says whom it reaches again") {
    worker.wait();
    worker.connected();
    CHECK(worker.on(worker_event::Stop{{"over"}}) == "cancel; exit");
  }
}

TEST_CASE("the master's stop ends a worker with success, from any state") {
  WorkerDriver idle;
  idle.join();
  CHECK(idle.on(worker_event::Stop{{"over"}}) == "exit");
  WorkerDriver busy;
  busy.join();
  busy.order(0);
  CHECK(busy.on(worker_event::Stop{{"over"}}) == "cancel; exit");
  CHECK(!busy.error);
  WorkerDriver greeting;
  greeting.tick(0);
  greeting.connected();
  CHECK(greeting.on(worker_event::Stop{{"over"}}) == "exit");
}

TEST_CASE("a signal: the worker says goodbye and ends with success") {
  WorkerDriver worker;
  worker.join(6);
  worker.order(0);
  CHECK(worker.on(worker_event::StopRequested{"SIGTERM"}) == "leave 6 code 0; cancel; exit");
  CHECK(!worker.error);
  CHECK(worker.tick(5).empty());
  WorkerDriver lonely;
  CHECK(lonely.on(worker_event::StopRequested{"SIGTERM"}) == "exit");
}

}  // namespace speedo
