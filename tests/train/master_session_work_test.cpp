#include "support/catch.hpp"

#include <limits>

#include <speedo/base/limits.hpp>

#include "master_session_driver.hpp"

namespace speedo {

TEST_CASE("a Train follows the merge of the worker's last contribution") {
  MasterDriver master(config_for(1, 100));
  CHECK(master.join(5, 0) == "train 5 run 0 it 0 v 0 data 0/1");
  CHECK(master.trained(5, 0, 0) == "merge 0 it 0: 0.0");
  CHECK(master.merged(0, 1) == "train 5 run 1 it 1 v 1 data 1/2");
  CHECK(master.trained(5, 0, 1) == "merge 1 it 1: 0.1");
  CHECK(master.merged(1, 2) == "train 5 run 2 it 2 v 2 data 2/3");
}

TEST_CASE("one merge is under way, further reports queue") {
  MasterDriver master(config_for(3, 100));
  master.join(5, 0);
  master.join(6, 1);
  master.join(7, 2);
  CHECK(master.trained(6, 1, 1) == "merge 0 it 0: 1.1");
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.trained(7, 2, 2).empty());
  CHECK(master.merged(0, 1) == "train 6 run 3 it 1 v 1 data 4/6; merge 1 it 1: 0.0");
  CHECK(master.merged(1, 2) == "train 5 run 4 it 2 v 2 data 3/7; merge 2 it 2: 2.2");
}

TEST_CASE("a late joiner starts behind the merge under way") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  master.trained(5, 0, 0);
  CHECK(master.join(6, 1).empty());
  CHECK(master.merged(0, 1) ==
        "train 5 run 1 it 1 v 1 data 1/3; train 6 run 2 it 1 v 1 data 2/4");
}

TEST_CASE("synchronous rounds use the data in order: r n .. r n + n - 1") {
  MasterDriver master(config_for(2, 100), "sync");
  master.join(5, 0);
  CHECK(master.join(6, 1) ==
        "train 5 run 0 it 0 v 0 data 0/2; train 6 run 1 it 0 v 0 data 1/3");
  CHECK(master.trained(6, 1, 1).empty());
  CHECK(master.trained(5, 0, 0) == "mean 0 it 0: 0.0 1.1");
  CHECK(master.merged(0, 1) ==
        "train 5 run 2 it 1 v 1 data 2/4; train 6 run 3 it 1 v 1 data 3/5");
  master.trained(5, 0, 2);
  master.trained(6, 1, 3);
  CHECK(master.merged(1, 2) ==
        "train 5 run 4 it 2 v 2 data 4/6; train 6 run 5 it 2 v 2 data 5/7");
  CHECK(master.session.progress().iteration == 2);
  CHECK(master.session.progress().merges == 2);
  CHECK(master.session.progress().contributions == 4);
  CHECK(master.session.progress().samples == 40);
}

TEST_CASE("a round's merge is expected as soon as its runs begin, and is what is ordered") {
  MasterDriver master(config_for(2, 100), "sync");
  master.join(5, 0);
  master.join(6, 1);
  REQUIRE(master.expected.size() == 1);
  master.trained(6, 1, 1);
  master.trained(5, 0, 0);
  master_command::StartMerge ordered = master.last_merge;
  ordered.merge = {};
  ordered.state.clear();
  CHECK(ordered == master.expected.back());
  REQUIRE(master.expected.size() == 1);
  master.merged(0, 1);
  REQUIRE(master.expected.size() == 2);

  // A worker dies in the middle of a round: its part is expected no longer.
  master.on(master_event::PeerLost{{6}, "gone"});
  REQUIRE(master.expected.size() == 3);
  CHECK(master.expected.back().contributions.size() == 1);
}

TEST_CASE("no merge is expected where each contribution is merged alone") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  master.join(6, 1);
  master.trained(6, 1, 1);
  CHECK(master.expected.empty());
}

TEST_CASE("where the time of all runs went is added up") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  master.join(6, 1);
  master.on(master_event::Trained{{5}, {0, 0, 0, 0, 10, {7, 60, 40, 30, 5}, {1, 2}}});
  master.on(master_event::Trained{{6}, {1, 1, 0, 0, 10, {2, 120, 80, 50, 6}, {3, 4}}});
  CHECK(master.session.progress().phases == PhaseTimes{9, 180, 120, 80, 11});
  CHECK(master.session.progress().traffic == Traffic{4, 6});
}

TEST_CASE("a resumed job goes on in the data where it was") {
  MasterConfig config = config_for(2, 100);
  config.start_iteration = 7;
  config.first_step = 14;
  MasterDriver master(config, "sync");
  master.join(5, 0);
  CHECK(master.join(6, 1) ==
        "train 5 run 0 it 7 v 0 data 14/16; train 6 run 1 it 7 v 0 data 15/17");
}

TEST_CASE("what a dead worker held of the data is handed out again, smallest first") {
  MasterDriver master(config_for(3, 100), "sync");
  master.join(5, 0);
  master.join(6, 1);
  master.join(7, 2);               // data 0/3, 1/4, 2/5
  master.lost(6);                  // 1 and 4 are free
  master.trained(5, 0, 0);
  master.trained(7, 2, 2);
  CHECK(master.merged(0, 1) ==
        "train 5 run 3 it 1 v 1 data 3/1; train 7 run 4 it 1 v 1 data 5/4");
}

TEST_CASE("a contribution that was reported before its worker died is merged, its data are used") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  master.join(6, 1);                     // data 0/2, 1/3
  master.trained(5, 0, 0);
  CHECK(master.trained(6, 1, 1).empty());
  CHECK(master.lost(6).empty());
  CHECK(master.merged(0, 1) == "train 5 run 2 it 1 v 1 data 2/3; merge 1 it 1: 1.1");
  CHECK(master.merged(1, 2).empty());    // nobody left to start for worker 1
  CHECK(master.session.progress().merges == 2);
}

TEST_CASE("a duplicate report is merged once") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  CHECK(master.trained(5, 0, 0) == "merge 0 it 0: 0.0");
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.merged(0, 1) == "train 5 run 1 it 1 v 1 data 1/2");
  CHECK(master.trained(5, 0, 0).empty());
  CHECK(master.session.progress().ignored == 2);
  CHECK(master.session.progress().merges == 1);
}

TEST_CASE("iterations, versions and runs count on from where the job stood") {
  MasterConfig config = config_for(1, 100);
  config.start_iteration = 40;
  config.first_version = {7};
  config.first_run = 1000;
  MasterDriver master(config);
  CHECK(master.join(5, 0) == "train 5 run 1000 it 40 v 7 data 0/1");
  CHECK(master.trained(5, 0, 1000, 1.0F, 7) == "merge 0 it 40: 0.1000");
  CHECK(master.merged(0, 8) == "train 5 run 1001 it 41 v 8 data 1/2");
}

TEST_CASE("staleness and loss are those of what was merged") {
  MasterDriver master(config_for(2, 100));
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0, 3.0F);
  master.trained(6, 1, 1, 5.0F);
  master.merged(0, 1);
  CHECK(master.session.progress().last_loss == 3.0F);
  master.merged(1, 2);
  CHECK(master.session.progress().last_loss == 5.0F);
  CHECK(master.session.progress().staleness_sum == 1.0);
}

TEST_CASE("a loss that is not finite is never merged, and the worker goes on") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  CHECK(master.trained(5, 0, 0, std::numeric_limits<float>::quiet_NaN()) ==
        "train 5 run 1 it 0 v 0 data 1/2");
  CHECK(master.trained(5, 0, 1, std::numeric_limits<float>::infinity()) ==
        "train 5 run 2 it 0 v 0 data 2/3");
  CHECK(master.session.progress().rejected == 2);
  CHECK(master.trained(5, 0, 2) == "merge 0 it 0: 0.2");
}

TEST_CASE("a round with one loss that is not finite averages the others") {
  MasterDriver master(config_for(2, 100), "sync");
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0);
  CHECK(master.trained(6, 1, 1, -std::numeric_limits<float>::infinity()) ==
        "mean 0 it 0: 0.0");
}

TEST_CASE("too many in a row that are not finite end training") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  for (int run = 0; run + 1 < kNonFiniteRunsMax; ++run) {
    CHECK(!master.trained(5, 0, run, std::numeric_limits<float>::quiet_NaN()).empty());
  }
  CHECK(!master.session.finished());
  CHECK(master.trained(5, 0, kNonFiniteRunsMax - 1, std::numeric_limits<float>::quiet_NaN()) ==
        fmt::format("stop 5; finish code {}", static_cast<int>(ErrorCode::kNotFinite)));
  CHECK(master.error->message.find("iteration 0") != std::string::npos);
  CHECK(master.error->message.find("base_lr") != std::string::npos);
}

TEST_CASE("a merge resets the count of those that are not finite; a rejected one does not") {
  MasterDriver master(config_for(1, 100));
  master.join(5, 0);
  std::uint64_t merge = 0;
  std::uint64_t run = 0;
  for (int i = 0; i + 1 < kNonFiniteRunsMax; ++i) {
    master.trained(5, 0, run++);
    CHECK(!master.merged(merge++, 0, {{0}}).empty());
  }
  CHECK(master.session.progress().iteration == 0);
  CHECK(master.session.progress().rejected == kNonFiniteRunsMax - 1);
  master.trained(5, 0, run++);
  master.merged(merge++, 1);
  CHECK(master.session.progress().iteration == 1);
  for (int i = 0; i + 1 < kNonFiniteRunsMax; ++i) {
    master.trained(5, 0, run++);
    master.merged(merge++, 1, {{0}});
  }
  CHECK(master.trains.at(5).run == run);
  master.trained(5, 0, run++);
  master.merged(merge++, 1, {{0}});
  // The weights are sound: the store has lost what followed.
  CHECK(master.snapshot_done(1).find("finish") != std::string::npos);
  CHECK(master.session.finished());
}

TEST_CASE("contributions that a store lost all at once count as one sign of divergence") {
  constexpr std::uint64_t kWorkers = 3 * kNonFiniteRunsMax;
  MasterDriver master(config_for(kWorkers, 1000), "sync");
  std::vector<WorkerId> all;
  for (std::uint64_t i = 0; i < kWorkers; ++i) {
    master.join(5 + i, i);
    all.push_back({i});
  }
  for (std::uint64_t round = 0; round < kNonFiniteRunsMax; ++round) {
    CHECK(!master.session.finished());
    for (std::uint64_t i = 0; i < kWorkers; ++i) {
      master.trained(5 + i, i, master.trains.at(5 + i).run);
    }
    master.merged(round, 0, all);
  }
  CHECK(master.error->code == ErrorCode::kUnavailable);
  CHECK(master.session.progress().rejected == kWorkers * kNonFiniteRunsMax);
}

TEST_CASE("the first run that is not finite ends training that is to be aborted, and is named") {
  MasterConfig config = config_for(2, 100);
  config.non_finite_max = 1;
  SECTION("by its worker") {
    MasterDriver master(config);
    master.join(5, 0);
    master.join(6, 1);
    master.on(master_event::Trained{
        {5}, {0, 0, std::bit_cast<std::uint32_t>(std::nanf("")), 0, 10, {}, {}, kNoVersion, 0,
              "blob 'ip1' of layer 'ip1'"}});
    REQUIRE(master.session.finished());
    CHECK(master.error->code == ErrorCode::kNotFinite);
    CHECK(master.error->message.find("--on-nan says abort") != std::string::npos);
    CHECK(master.error->message.find("blob 'ip1' of layer 'ip1'") != std::string::npos);
    CHECK(master.error->message.find("host5") != std::string::npos);
  }
  SECTION("by the merger; what the store lost is another matter") {
    MasterDriver master(config, "sync");
    master.join(5, 0);
    master.join(6, 1);
    master.trained(5, 0, 0);
    master.trained(6, 1, 1);
    master.merged(0, 1, {{1}});
    REQUIRE_FALSE(master.session.finished());
    master.trained(5, 0, master.trains.at(5).run);
    master.trained(6, 1, master.trains.at(6).run);
    master.on(master_event::Merged{{1}, {2}, {{1}}, std::nullopt, {{1}}, {}});
    REQUIRE(master.session.finished());
    CHECK(master.error->message.find("worker 1") != std::string::npos);
  }
}

TEST_CASE("contributions that were too large are counted, and are no divergence") {
  MasterConfig config = config_for(1, 100);
  config.non_finite_max = 1;
  MasterDriver master(config);
  master.join(5, 0);
  for (std::uint64_t run = 0; run < 2 * kNonFiniteRunsMax; ++run) {
    master.trained(5, 0, run);
    master.on(master_event::Merged{{run}, {0}, {{0}}, std::nullopt, {}, {{0}}});
  }
  CHECK_FALSE(master.session.finished());
  CHECK(master.session.progress().rejected == 2 * kNonFiniteRunsMax);
}

TEST_CASE("a rejected contribution in a mean leaves the iteration to the others") {
  MasterDriver master(config_for(2, 100), "sync");
  master.join(5, 0);
  master.join(6, 1);
  master.trained(5, 0, 0, 2.0F);
  master.trained(6, 1, 1, 8.0F);
  CHECK(!master.on(master_event::Merged{{0}, {1}, {{1}}, std::nullopt, {{1}}}).empty());
  CHECK(master.session.progress().iteration == 1);
  CHECK(master.session.progress().merges == 1);
  CHECK(master.session.progress().rejected == 1);
  CHECK(master.session.progress().last_loss == 2.0F);
}

}  // namespace speedo
