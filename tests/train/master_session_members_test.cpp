#include <chrono>
#include <utility>

#include "support/catch.hpp"

#include "master_session_driver.hpp"

namespace speedo {

TEST_CASE("training starts when enough workers are ready, with all of them at once") {
  MasterDriver master(config_for(2, 100));
  CHECK(master.hello(50) == "welcome 50 as 0");
  CHECK(master.hello(51) == "welcome 51 as 1");
  CHECK(master.ready(51, 1).empty());
  CHECK(!master.session.progress().training);
  CHECK(master.ready(50, 0) ==
        "train 50 run 0 it 0 v 0 data 0/2; train 51 run 1 it 0 v 0 data 1/3");
  CHECK(master.session.progress().training);
  CHECK(master.session.progress().workers_alive == 2);
}

TEST_CASE("the welcome says where the job lies and which model it is, and nothing secret") {
  MasterConfig config = config_for(1, 100);
  config.term = 77;
  config.store = StoreAddress("unix://me:hush@/r.sock");
  MasterSession session(config);
  const auto commands = session.on(master_event::Hello{{7}, {kProtocolVersion, "w", "cpu", 1, 2}});
  REQUIRE(commands.size() == 1);
  const WelcomeMessage& message = std::get<master_command::SendWelcome>(commands[0]).message;
  CHECK(message.store == "unix:///r.sock");
  CHECK(message.job == "job");
  CHECK(message.model_high == 11);
  CHECK(message.model_low == 12);
  CHECK(message.term == 77);
  CHECK(session.progress().term == 77);
  CHECK(session.progress().worker_ids == 1);
}

TEST_CASE("workers are told to bear as much silence as the master does, and never less than 5 s") {
  for (const auto& [timeout_s, silence_ms] :
       {std::pair{0, 0U}, std::pair{2, 5000U}, std::pair{60, 60000U}}) {
    MasterConfig config = config_for(1, 100);
    config.worker_timeout = std::chrono::seconds{timeout_s};
    MasterSession session(config);
    const auto welcomed =
        session.on(master_event::Hello{{7}, {kProtocolVersion, "w", "cpu", 1, 2}});
    REQUIRE(welcomed.size() == 1);
    CHECK(std::get<master_command::SendWelcome>(welcomed[0]).message.silence_ms == silence_ms);
  }
}

TEST_CASE("another protocol is refused, naming both") {
  MasterDriver master(config_for(1, 100));
  const auto text = master.on(master_event::Hello{{5}, {77, "old", "cpu", 0, 0}});
  CHECK(text == fmt::format("refuse 5 code {}", static_cast<int>(ErrorCode::kMismatch)));
  CHECK(master.refusal.find("77") != std::string::npos);
  CHECK(master.refusal.find(std::to_string(kProtocolVersion)) != std::string::npos);
  CHECK(master.ready(5, 0).empty());
  CHECK(master.session.progress().ignored == 1);
}

TEST_CASE("another model is refused, naming both") {
  MasterDriver master(config_for(1, 100));
  master.hello(5);
  const auto text = master.on(master_event::Ready{{5}, {0, 11, 13}});
  CHECK(text == fmt::format("refuse 5 code {}", static_cast<int>(ErrorCode::kMismatch)));
  CHECK(master.refusal.find(to_string(Digest{11, 13})) != std::string::npos);
  CHECK(master.refusal.find(to_string(Digest{11, 12})) != std::string::npos);
  CHECK(master.session.progress().workers_joined == 0);
  CHECK(master.hello(6) == "welcome 6 as 1");
}

TEST_CASE("messages of strangers, of other lives and doubles are ignored and counted") {
  MasterDriver master(config_for(1, 100));
  CHECK(master.ready(9, 0).empty());
  master.join(5, 0);
  CHECK(master.ready(5, 0).empty());
  CHECK(master.trained(9, 0, 0).empty());
  CHECK(master.trained(5, 1, 0).empty());
  CHECK(master.trained(5, 0, 3).empty());
  CHECK(master.on(master_event::Leave{{9}, {0, 0, ""}}).empty());
  CHECK(master.session.progress().ignored == 6);
  CHECK(master.noted("ignored a report of connection 9"));
  CHECK(master.trained(5, 0, 0) == "merge 0 it 0: 0.0");
}

TEST_CASE("a second Hello on a connection begins a new incarnation and ends the old one") {
  MasterDriver master(config_for(1, 100));
  CHECK(master.join(5, 0) == "train 5 run 0 it 0 v 0 data 0/1");
  CHECK(master.hello(5) == "welcome 5 as 1");
  CHECK(master.session.progress().workers_alive == 0);
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.ready(5, 1) == "train 5 run 1 it 0 v 0 data 0/1");
}

TEST_CASE("a worker that comes back on a new connection is a new worker") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  CHECK(master.lost(5).empty());
  CHECK(master.noted("no worker is left"));
  CHECK(master.hello(6) == "welcome 6 as 1");
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.ready(6, 1) == "train 6 run 1 it 0 v 0 data 0/1");
  CHECK(master.session.progress().workers_joined == 2);
}

TEST_CASE("a departure says why; with a code it is a warning") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  const auto commands = master.session.on(master_event::Leave{{5}, {0, 3, "no\ndata"}});
  const auto& note = std::get<master_command::Note>(commands.at(0));
  CHECK(note.warning);
  CHECK(note.text.find("no data") != std::string::npos);
}

TEST_CASE("too few workers in time: the end, saying how many came") {
  MasterConfig config = config_for(3, 100);
  config.join_timeout = std::chrono::seconds(60);
  MasterDriver master(config);
  CHECK(master.tick(0).empty());
  master.join(5, 0);
  CHECK(master.tick(59).empty());
  CHECK(master.noted("1 of 3"));
  CHECK(master.tick(60) == fmt::format("refuse 5 code {}; finish code {}",
                                       static_cast<int>(ErrorCode::kUnavailable),
                                       static_cast<int>(ErrorCode::kTimeout)));
  CHECK(master.error->message.find("1 of 3 workers joined within 60 s (--join-timeout)") !=
        std::string::npos);
  CHECK(master.session.finished());
  CHECK(master.hello(6).empty());
}

TEST_CASE("with enough workers the join time-out does not strike") {
  MasterConfig config = config_for(1, 100);
  config.join_timeout = std::chrono::seconds(60);
  MasterDriver master(config);
  master.tick(0);
  master.join(5, 0);
  CHECK(master.tick(1000).empty());
}

TEST_CASE("when all workers are gone the master waits, says so, and gives up in the end") {
  MasterConfig config = config_for(2, 100);
  config.join_timeout = std::chrono::seconds(70);
  MasterDriver master(config);
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.lost(5);
  CHECK(master.tick(500).empty());
  CHECK(!master.noted("no worker is left"));
  master.lost(6);
  CHECK(master.noted("no worker is left"));
  master.notes.clear();
  CHECK(master.tick(529).empty());
  CHECK(master.notes.empty());
  CHECK(master.tick(530).empty());
  CHECK(master.notes.size() == 1);
  CHECK(master.tick(569).empty());
  CHECK(master.tick(570) == fmt::format("finish code {}", static_cast<int>(ErrorCode::kTimeout)));
}

TEST_CASE("one new worker is enough to go on") {
  MasterDriver master(config_for(2, 100));
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  master.lost(5);
  master.lost(6);
  CHECK(master.join(7, 2) == "train 7 run 2 it 0 v 0 data 0/1");
}

TEST_CASE("more than MAX are turned away until there is room") {
  MasterConfig config = config_for(1, 100);
  config.workers_max = 2;
  MasterDriver master(config);
  const std::string turned_away =
      fmt::format("refuse 7 code {}", static_cast<int>(ErrorCode::kUnavailable));
  master.join(5, 0);
  CHECK(master.hello(6) == "welcome 6 as 1");   // counts though it is not ready
  CHECK(master.hello(7) == turned_away);
  CHECK(master.refusal.find("has its 2 workers, the most it takes") != std::string::npos);
  master.lost(5);
  CHECK(master.hello(7) == "welcome 7 as 2");
  CHECK(master.session.progress().quarantined == 0);
}

// As --deterministic has it of --workers 1, too.
TEST_CASE("a job that takes exactly so many says what made it so") {
  MasterConfig config = config_for(1, 100);
  config.workers_min = config.workers_max = 1;
  MasterDriver master(config);
  master.join(5, 0);
  master.hello(6);
  CHECK(master.refusal.find("has its 1 worker, exactly") != std::string::npos);
  CHECK(master.refusal.find("--deterministic") != std::string::npos);
}

TEST_CASE("a process that comes back on another connection ends its earlier incarnation first") {
  MasterConfig config = config_for(1, 100);
  config.workers_max = 1;
  MasterDriver master(config);
  CHECK(master.hello(5, "a/1/0", 42) == "welcome 5 as 0");
  CHECK(master.ready(5, 0) == "train 5 run 0 it 0 v 0 data 0/1");
  CHECK(master.hello(6, "a/1/0", 42) == "welcome 6 as 1");
  CHECK(master.session.progress().workers_alive == 0);
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.lost(5).empty());
  CHECK(master.ready(6, 1) == "train 6 run 1 it 0 v 0 data 0/1");
}

TEST_CASE("rounds of an exact number: who joins does the missing run, but not a process that would "
          "overwrite what it has contributed to the round") {
  MasterConfig config = config_for(3, 100);
  config.workers_min = config.workers_max = 3;
  config.stages.front().strategy = {.name = "sync", .exact_workers = 3};
  MasterDriver master(config);
  for (const std::uint64_t worker : {0, 1, 2}) {
    master.hello(1 + worker, {}, 11 + worker);
    master.ready(1 + worker, worker);
  }
  master.trained(1, 0, 0);
  master.trained(2, 1, 1);
  master.lost(1);
  master.lost(3);
  master.hello(4, {}, 11);
  CHECK(master.ready(4, 3).empty());
  master.hello(5);
  CHECK(master.ready(5, 4) == "train 5 run 3 it 0 v 0 data 2/3");
  master.trained(5, 4, 3);
  REQUIRE(master.last_merge.contributions.size() == 3);
  CHECK(master.last_merge.contributions[2].worker == WorkerId{4});
  master.merged(0, 1);
  CHECK(master.trains.contains(4));
  CHECK(master.trains.at(4).run > 3);
}

TEST_CASE("without a uuid nobody is taken for another") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  master.join(6, 1);
  CHECK(master.session.progress().workers_alive == 2);
}

TEST_CASE("a host whose workers come and go without a run is kept out for a while") {
  MasterDriver master(config_for(1, 100));
  const std::string turned_away =
      fmt::format("refuse 50 code {}", static_cast<int>(ErrorCode::kUnavailable));
  master.tick(0);
  std::uint64_t worker = 0;
  const auto flap = [&](std::uint64_t peer) {
    CHECK(master.hello(peer, "shaky/9/0") == fmt::format("welcome {} as {}", peer, worker));
    master.ready(peer, worker++);
    master.lost(peer);
  };
  for (int i = 0; i < kQuarantineAfter; ++i) flap(10);
  CHECK(master.noted("workers of shaky come and go without finishing a run"));
  CHECK(master.hello(50, "shaky/10/0") == turned_away);
  CHECK(master.session.progress().quarantined == 1);
  CHECK(master.hello(51, "steady/1/0") == fmt::format("welcome 51 as {}", worker++));
  master.tick(1);
  flap(11);
  master.tick(2);
  CHECK(master.hello(50, "shaky/10/0") == turned_away);
  CHECK(master.refusal.find("kept out for 1.0 s more") != std::string::npos);
  master.tick(3);
  CHECK(master.hello(50, "shaky/10/0") == fmt::format("welcome 50 as {}", worker));
  master.ready(50, worker);
  const std::uint64_t run = master.trains[50].run;
  CHECK(master.trained(50, worker, run) == fmt::format("merge 0 it 0: {}.{}", worker, run));
  worker += 1;
  master.lost(50);
  for (int i = 0; i + 1 < kQuarantineAfter; ++i) flap(12);
  CHECK(master.hello(52, "shaky/11/0") == fmt::format("welcome 52 as {}", worker));
}

TEST_CASE("those that could not reach the store, and doubles, do not count as flapping") {
  MasterDriver master(config_for(1, 100));
  const auto away = static_cast<std::uint32_t>(ErrorCode::kUnavailable);
  for (std::uint64_t i = 0; i < 10; ++i) {
    CHECK(master.hello(5, "h/1/0") == fmt::format("welcome 5 as {}", i));
    if (i % 2 == 0) master.on(master_event::Leave{{5}, {i, away, "redis away"}});
  }
  CHECK(master.session.progress().quarantined == 0);
}

TEST_CASE("a Ready that is repeated before the first order is nothing special") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  CHECK(master.ready(5, 0).empty());
  CHECK(master.session.progress().ignored == 0);
  CHECK(master.session.progress().workers_alive == 1);
}

}  // namespace speedo
