#include "cli/flags/schedule_flags.hpp"

#include <fstream>

#include "cli/group_file.hpp"
#include "cli/make_schedule.hpp"
#include "cli/options/option_parser.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

Result<Schedule> schedule_of(const Words& arguments, std::uint64_t workers = 4,
                             FlagScope scope = FlagScope::kJob) {
  OptionValues values(scope == FlagScope::kStage ? Program::kStage : Program::kMaster);
  SPEEDO_TRY(read_flags(arguments, values));
  return make_schedule(schedule_flags(values), workers, scope);
}

Schedule granted(const Words& arguments, std::uint64_t workers = 4) {
  auto made = schedule_of(arguments, workers);
  INFO((made ? "" : made.error().message));
  REQUIRE(made);
  return *made;
}

std::string why_not(const Words& arguments) {
  const auto made = schedule_of(arguments);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::kUsage);
  CHECK(made.error().message.find('\n') == std::string::npos);
  return made.error().message;
}

TEST_CASE("Flags choose the schedule, by its name or by a parameter of it") {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{}, "async"},
      {{"--sync"}, "sync"},
      {{"--strategy", "sync", "-sync"}, "sync"},
      {{"--maxAdvance", "3"}, "partial-sync"},
      {{"--strategy", "psc"}, "partial-sync"},
      {{"--strategy", "psc", "--max-advance", "3"}, "partial-sync"},
      {{"--staleness", "0"}, "ssp"},
      {{"--weedout", "3"}, "weedout"},
      {{"--drop=3"}, "weedout"},
      {{"--strategy", "drop"}, "weedout"},
      {{"--groups", "2"}, "grouping"},
      {{"--groups", "auto", "--regroup-interval", "100"}, "grouping"},
      {{"--movingRate", "0.5"}, "easgd"},
      {{"--strategy", "sync-easgd", "--moving-rate", "0.2"}, "sync-easgd"},
      {{"--strategy", "sync-easgd", "--sync"}, "sync-easgd"},
      {{"--strategy", "averaging", "--average-every", "7"}, "averaging"}};
  for (const auto& [arguments, name] : cases) {
    INFO(name);
    CHECK(granted(arguments).strategy.name == name);
  }
}

TEST_CASE("Every name and alias of the registry can be asked for alone") {
  for (const StrategyEntry& entry : strategy_registry()) {
    INFO(entry.name);
    CHECK(granted({"--strategy", entry.name}).strategy.name == entry.name);
  }
}

TEST_CASE("Parameters reach the schedule, with defaults for those left out") {
  CHECK(granted({"--maxAdvance", "5"}).strategy.max_advance == 5);
  CHECK(granted({"--strategy", "partial-sync"}).strategy.max_advance == 2);
  CHECK(granted({"--staleness", "0"}).strategy.staleness == 0);
  CHECK(granted({"--weedout", "9"}).strategy.window == 9);
  CHECK(granted({"--strategy", "weedout"}).strategy.window == 1);
  CHECK(granted({"--groups", "3"}).strategy.group_count == 3);
  CHECK(granted({"--regroup-interval", "30"}).strategy.regroup_interval == 30);
  CHECK(granted({"--staleness-weight"}).weight_by_staleness);
  const Schedule scaled = granted({"--sync", "--lr-scaling", "sqrt", "--lr-warmup", "20"});
  CHECK(scaled.lr_scaling == LrScaling::kSqrt);
  CHECK(scaled.lr_warmup == 20);
}

TEST_CASE("The update rule follows the name, and flags go before it") {
  const UpdateSpec easgd = granted({"--strategy", "easgd"}, 3).update;
  CHECK(easgd.kind == UpdateKind::kElastic);
  CHECK(easgd.moving_rate == Approx(0.3));
  CHECK(granted({"--strategy", "easgd", "--communication-period", "10"}).update.steps_per_run ==
        10);
  CHECK(granted({"--moving-rate", "0.125"}).update.moving_rate == 0.125F);
  CHECK(granted({"--movingRate", "0.1", "--elastic-side", "master"}).update.kind ==
        UpdateKind::kElasticMaster);
  const UpdateSpec late = granted({"--weedout", "3", "--movingRate", "0.25"}).update;
  CHECK(late.kind == UpdateKind::kElastic);
  CHECK(late.moving_rate == 0.25F);
  const UpdateSpec averaging = granted({"--strategy", "averaging"}).update;
  CHECK(averaging.steps_per_run == 5);
  CHECK(averaging.updater == UpdaterState::kAverage);
  CHECK(granted({"--strategy", "averaging", "--save-updater", "reset"}).update.updater ==
        UpdaterState::kReset);
  CHECK(granted({"--gradientOnly"}).update.kind == UpdateKind::kGradientOnly);
  CHECK(granted({"--factor", "4", "--skip", "0.5"}).update.factor == 4.0F);
  CHECK(granted({"--sync"}).update.codec == CodecSpec{});
  CHECK(granted({"--sync", "--codec", "auto"}).update.codec == CodecSpec{});
  const UpdateSpec replicated =
      granted({"--sync", "--gradient-only", "--replicated", "--codec", "auto"}).update;
  CHECK((replicated.replicated && replicated.factors));
  CHECK_FALSE(
      granted({"--sync", "--gradient-only", "--replicated", "--no-factors"}).update.factors);
  CHECK(granted({"--sync", "--codec", "topk:0.5"}).update.codec ==
        CodecSpec{.kind = CodecKind::kTopK, .percent = 0.5});
  CHECK_FALSE(carries_residual(granted({"--codec", "int8", "--no-error-feedback"}).update));
}

TEST_CASE("The solver's values are a stage's own only in a stage") {
  const auto stage =
      schedule_of({"--maxIter", "50", "--test", "5", "--lr", "0.5"}, 2, FlagScope::kStage);
  REQUIRE(stage);
  CHECK(stage->iterations == 50);
  CHECK(stage->test_interval == 5);
  CHECK(stage->update.base_lr == 0.5F);
  const Schedule job = granted({"--maxIter", "50", "--lr", "0.5"});
  CHECK(job.iterations == 0);
  CHECK_FALSE(job.update.base_lr);
}

TEST_CASE("Flags that contradict each other, or mean nothing together, are refused by name") {
  const std::vector<std::pair<Words, Words>> cases = {
      {{"--sync", "--strategy", "async"}, {"--sync", "async"}},
      {{"--sync", "--weedout", "3"}, {"--sync", "--weedout"}},
      {{"--max-advance", "2", "--staleness", "1"}, {"--max-advance", "--staleness"}},
      {{"--strategy", "ssp", "--max-advance", "2"}, {"--max-advance", "ssp"}},
      {{"--strategy", "easgd", "--sync"}, {"--sync", "sync-easgd --moving-rate"}},
      {{"--sync", "--movingRate", "0.2"}, {"SpeeDO ignored it", "--strategy sync-easgd"}},
      {{"--groups", "2", "--drop", "3"}, {"--groups", "--drop"}},
      {{"--gradient-only", "--movingRate", "0.1"}, {"--gradient-only", "--moving-rate"}},
      {{"--gradient-only", "--strategy", "easgd"}, {"easgd"}},
      {{"--gradient-only", "--strategy", "averaging"}, {"--gradient-only"}},
      {{"--gradient-only", "--train", "4"}, {"--gradient-only", "--train 4"}},
      {{"--gradient-only", "--factor", "2"}, {"--gradient-only", "--factor"}},
      {{"--gradient-only", "--skip", "0.1"}, {"--gradient-only", "--skip"}},
      {{"--gradient-only", "--save-updater", "average"}, {"--gradient-only", "--save-updater"}},
      {{"--elastic-side", "master"}, {"--elastic-side", "--moving-rate"}},
      {{"--moving-rate", "0.1", "--factor", "2"}, {"--factor", "elastic"}},
      {{"--codec", "zip"}, {"zip", "onebit"}},
      {{"--no-error-feedback"}, {"--no-error-feedback", "--codec"}},
      {{"--strategy", "easgd", "--codec", "int8", "--no-error-feedback"}, {"elastic"}},
      {{"--codec", "topk:0"}, {"topk:0"}},
      {{"--strategy", "averaging", "--codec", "int8"}, {"--codec int8", "--save-updater keep"}},
      {{"--moving-rate", "0.1", "--elastic-side", "master", "--codec", "bf16"},
       {"--codec bf16", "--elastic-side worker"}},
      {{"--save-updater", "average"}, {"rounds"}},
      {{"--lr-warmup", "10"}, {"--lr-warmup", "--lr-scaling"}},
      {{"--lr-scaling", "linear"}, {"--lr-scaling", "async"}},
      {{"--sync", "--staleness-weight"}, {"--staleness-weight", "sync"}},
      {{"--strategy", "hybrid"}, {"--hybrid"}},
      {{"--strategy", "nonsense"}, {"nonsense", "async"}}};
  for (const auto& [arguments, names] : cases) {
    const std::string message = why_not(arguments);
    INFO(message);
    for (const std::string& name : names) CHECK(message.find(name) != std::string::npos);
  }
}

TEST_CASE("Parameters out of range are refused, naming flag and value") {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--max-advance", "0"},
                                                        {"--max-advance", "x"},
                                                        {"--staleness", "-1"},
                                                        {"--weedout", "0"},
                                                        {"--moving-rate", "1.5"},
                                                        {"--moving-rate", "-0.1"},
                                                        {"--moving-rate", "nan"},
                                                        {"--train", "0"},
                                                        {"--groups", "0"},
                                                        {"--save-updater", "never"},
                                                        {"--elastic-side", "both"},
                                                        {"--lr-scaling", "cubic"},
                                                        {"--factor", "0"},
                                                        {"--lr", "-0.1"},
                                                        {"--momentum", "1"},
                                                        {"--weight-decay", "-1"},
                                                        {"--regroup-interval", "-5"}}) {
    const std::string message = why_not({flag, value});
    INFO(message);
    CHECK(message.find(flag) != std::string::npos);
  }
}

TEST_CASE("A schedule is described for people") {
  CHECK(describe(granted({"--maxAdvance", "2"})) ==
        "partial-sync, max advance 2; full updates of 1 mini-batch");
  CHECK(describe(granted({"--strategy", "easgd", "--train", "10"})) ==
        "easgd; elastic averaging every 10 mini-batches with moving rate 0.225");
}

// A group file with this content, and what is wrong with it.
std::string bad_groups(const std::string& content) {
  const TempDir folder;
  std::ofstream(folder / "groups") << content;
  const auto read = read_group_file((folder / "groups").string());
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kConfig);
  return read.error().message;
}

TEST_CASE("A group file: a group a line, blanks between names, comments") {
  const TempDir folder;
  std::ofstream(folder / "groups") << "# fast\n a b\t# two\n\nhost-1/77/0\n";
  const auto groups = read_group_file((folder / "groups").string());
  REQUIRE(groups);
  CHECK(*groups == Groups{{"a", "b"}, {"host-1/77/0"}});
  const Schedule made = granted({"--groups", (folder / "groups").string()});
  CHECK(made.strategy.groups == *groups);
}

TEST_CASE("A bad group file is refused with its line") {
  CHECK(bad_groups("a b\n\nc a\n").find("groups:3: 'a' is in the group of line 1") !=
        std::string::npos);
  CHECK(bad_groups("a\x01\n").find("groups:1: ") != std::string::npos);
  CHECK(bad_groups("a,b\n").find("groups:1: 'a,b' holds a comma: separate names by blanks") !=
        std::string::npos);
  for (const char* count : {"-1", "0", "4097", "99999999999999999999999"}) {
    const auto made = schedule_of({"--groups", count});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::kUsage);
    CHECK(made.error().message.find("from 1 to 4096") != std::string::npos);
  }
  CHECK(bad_groups("# nothing\n").find("no group") != std::string::npos);
  CHECK(schedule_of({"--groups", "nowhere.txt"}).error().code == ErrorCode::kConfig);
  CHECK(schedule_of({"--groups", "nowhere.txt"}).error().message.find("nowhere.txt") !=
        std::string::npos);
}

TEST_CASE("The sample group file is one") {
  const auto groups = read_group_file("conf/groups.txt");
  REQUIRE(groups);
  CHECK(*groups == Groups{{"worker0", "worker1"}, {"worker2", "worker3"}});
}

}  // namespace
}  // namespace speedo
