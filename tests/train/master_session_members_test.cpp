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

TEST_CASE("the welcome says where the job lies and which model it is") {
  MasterSession session(config_for(1, 100), MasterDriver::named("async"));
  const auto commands = session.on(master_event::Hello{{7}, {kProtocolVersion, "w", "cpu"}});
  REQUIRE(commands.size() == 1);
  const WelcomeMessage& message = std::get<master_command::SendWelcome>(commands[0]).message;
  CHECK(message.store == "unix:///r.sock");
  CHECK(message.job == "job");
  CHECK(message.model_high == 11);
  CHECK(message.model_low == 12);
}

TEST_CASE("another protocol is refused, naming both") {
  MasterDriver master(config_for(1, 100));
  const auto text = master.on(master_event::Hello{{5}, {77, "old", "cpu"}});
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

TEST_CASE("a second Hello on a connection begins a new life and ends the old one") {
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
  CHECK(master.tick(60) ==
        fmt::format("stop 5; finish code {}", static_cast<int>(ErrorCode::kTimeout)));
  CHECK(master.error->message.find("1 of 3 workers joined within 60 s") != std::string::npos);
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
  CHECK(master.tick(501).empty());
  master.notes.clear();
  CHECK(master.tick(530).empty());
  CHECK(master.notes.empty());
  CHECK(master.tick(531).empty());
  CHECK(master.notes.size() == 1);
  CHECK(master.tick(571) == "snapshot 0");
  CHECK(master.snapshot_done(0) ==
        fmt::format("finish code {}", static_cast<int>(ErrorCode::kTimeout)));
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

TEST_CASE("a run that stays silent for worker_timeout makes its worker dead") {
  MasterConfig config = config_for(2, 100);
  config.worker_timeout = std::chrono::seconds(10);
  MasterDriver master(config, "sync");
  master.tick(0);
  master.join(5, 0);
  master.join(6, 1);
  CHECK(master.tick(5).empty());
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.tick(9).empty());
  CHECK(master.tick(10) == fmt::format("refuse 6 code {}; mean 0 it 0: 0.0",
                                       static_cast<int>(ErrorCode::kTimeout)));
  CHECK(master.trained(6, 1, 1).empty());
  CHECK(master.lost(6).empty());
  CHECK(master.tick(60).empty());
  CHECK(master.merged(0, 1) == "train 5 run 2 it 1 v 1 data 2/1");
}

TEST_CASE("time before the first tick is nobody's silence") {
  MasterConfig config = config_for(1, 100);
  config.worker_timeout = std::chrono::seconds(10);
  MasterDriver master(config);
  master.join(5, 0);
  CHECK(master.tick(5000).empty());
  CHECK(master.tick(5009).empty());
  CHECK(!master.tick(5010).empty());
}

}  // namespace speedo
