#include "cli/hybrid.hpp"

#include <fstream>

#include "cli/stages.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kSpeedoExample =
    "=maxIter 100 =sync == =maxIter 200 =test 100 == =maxIter 300 =drop 3";

ClusterFlags with_hybrid(const std::string& text) {
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));
  flags.hybrid = text;
  return flags;
}

std::string refused(const ClusterFlags& flags, ErrorCode code = ErrorCode::kUsage) {
  const auto stages = make_stages(flags);
  REQUIRE_FALSE(stages);
  CHECK(stages.error().code == code);
  CHECK(stages.error().message.find('\n') == std::string::npos);
  return stages.error().message;
}

TEST_CASE("The arguments behind --hybrid become one, up to the end or the next flag") {
  const Words folded = {"--test=50", std::string("--hybrid=") + kSpeedoExample};
  CHECK(fold_hybrid({"--test=50", "--hybrid", "=maxIter", "100", "=sync", "==", "=maxIter", "200",
                     "=test", "100", "==", "=maxIter", "300", "=drop", "3"}) == folded);
  CHECK(fold_hybrid({"--test=50", "--hybrid", kSpeedoExample}) == folded);
  CHECK(fold_hybrid(folded) == folded);
  CHECK(fold_hybrid({"-hybrid", "=sync", "=lr", "-0.5", "--json"}) ==
        Words{"-hybrid==sync =lr -0.5", "--json"});
  CHECK(fold_hybrid({"--hybrid-file", "x", "--sync"}) == Words{"--hybrid-file", "x", "--sync"});
  CHECK(fold_hybrid({"--hybrid"}) == Words{"--hybrid"});
  CHECK(fold_hybrid({"--", "--hybrid", "=sync"}) == Words{"--", "--hybrid", "=sync"});
}

TEST_CASE("SpeeDO's example of a hybrid") {
  const auto stages = make_stages(with_hybrid(kSpeedoExample));
  REQUIRE(stages);
  REQUIRE(stages->size() == 3);
  CHECK((*stages)[0].strategy.name == "sync");
  CHECK((*stages)[0].iterations == 100);
  CHECK_FALSE((*stages)[0].test_interval);
  CHECK((*stages)[1].strategy.name == "async");
  CHECK((*stages)[1].test_interval == 100);
  CHECK((*stages)[2].strategy.name == "weedout");
  CHECK((*stages)[2].strategy.window == 3);
  CHECK((*stages)[2].iterations == 300);
}

TEST_CASE("Stages take over what does not choose a schedule") {
  ClusterFlags flags = with_hybrid("=maxIter 10 =sync == =maxIter 20 =train 3");
  flags.schedule.train = 2;
  const auto stages = make_stages(flags);
  REQUIRE(stages);
  CHECK((*stages)[0].update.steps_per_run == 2);
  CHECK((*stages)[1].update.steps_per_run == 3);
  flags.schedule.train.reset();
  flags.schedule.gradient_only = true;
  CHECK(refused(flags).find("--hybrid, stage 2: --gradient-only") == 0);
}

TEST_CASE("A malformed list of stages is refused, naming the stage") {
  const std::vector<std::pair<std::string, Words>> cases = {
      {"=maxIter 100 =sync == ", {"stage 2 is empty"}},
      {"== =sync", {"stage 1 is empty"}},
      {"=maxIter 100 =snyc == =drop 3", {"stage 1", "--snyc", "did you mean --sync"}},
      {"=maxIter 100 == =maxIter x", {"stage 2", "--max-iter", "'x'"}},
      {"=maxIter 100 == =drop", {"stage 2", "needs a value"}},
      {"=maxIter 100 == drop 3", {"stage 2", "drop"}},
      {"=maxIter 100 == = 3", {"stage 2", "'='"}},
      {"=maxIter 0 =sync == =drop 3", {"stage 1", "--max-iter"}},
      {"=sync == =maxIter 100", {"stage 1", "maxIter"}},
      {"=maxIter 5 =sync =drop 3 == =drop 3", {"stage 1", "--sync", "--drop"}},
      {"=maxIter 5 =sync == =movingRate 2", {"stage 2", "--moving-rate"}},
      {"=maxIter 5 =sync == =workers 3", {"stage 2", "--workers"}}};
  for (const auto& [text, names] : cases) {
    const std::string message = refused(with_hybrid(text));
    INFO(message);
    for (const std::string& name : names) CHECK(message.find(name) != std::string::npos);
  }
}

TEST_CASE("Flags beside a hybrid are the defaults of its stages, as with SpeeDO") {
  ClusterFlags flags = with_hybrid("=maxIter 10 == =maxIter 20 =drop 3 == =maxIter 5 =train 2");
  flags.schedule.max_advance = 4;
  flags.schedule.moving_rate = 0.25;
  const auto stages = make_stages(flags);
  INFO((stages ? "" : stages.error().message));
  REQUIRE(stages);
  CHECK((*stages)[0].strategy.name == "partial-sync");
  CHECK((*stages)[0].strategy.max_advance == 4);
  CHECK((*stages)[0].update.kind == UpdateKind::kElastic);
  CHECK((*stages)[1].strategy.name == "weedout");
  CHECK((*stages)[1].strategy.max_advance == 0);
  CHECK((*stages)[1].update.moving_rate == 0.25F);
  CHECK((*stages)[2].strategy.name == "partial-sync");
  CHECK((*stages)[2].update.steps_per_run == 2);
}

TEST_CASE("A default that means nothing for a stage does not reach it") {
  ClusterFlags flags = with_hybrid(
      "=maxIter 10 =sync == =maxIter 9 =strategy sync-easgd =movingRate 0.5 == "
      "=maxIter 8 =strategy async");
  flags.schedule.sync = true;
  flags.schedule.gradient_only = true;
  const auto gradients = make_stages(flags);
  INFO((gradients ? "" : gradients.error().message));
  REQUIRE(gradients);
  CHECK((*gradients)[0].update.kind == UpdateKind::kGradientOnly);
  CHECK((*gradients)[1].strategy.name == "sync-easgd");
  CHECK((*gradients)[1].update.kind == UpdateKind::kElastic);
  CHECK((*gradients)[2].strategy.name == "async");

  flags = with_hybrid("=maxIter 10 =sync == =maxIter 9 =strategy async == =drop 3");
  flags.schedule.moving_rate = 0.5;
  flags.schedule.elastic_side = "master";
  const auto elastic = make_stages(flags);
  INFO((elastic ? "" : elastic.error().message));
  REQUIRE(elastic);
  CHECK((*elastic)[0].update.kind == UpdateKind::kFullDelta);
  CHECK((*elastic)[1].update.kind == UpdateKind::kElasticMaster);
  CHECK((*elastic)[2].update.kind == UpdateKind::kElasticMaster);

  flags = with_hybrid("=maxIter 9 =sync =gradientOnly =replicated == =maxIter 9 =gradientOnly");
  flags.schedule.no_factors = true;
  const auto factors = make_stages(flags);
  INFO((factors ? "" : factors.error().message));
  REQUIRE(factors);
  CHECK_FALSE((*factors)[0].update.factors);
  CHECK((*factors)[1].update.factors);
}

TEST_CASE("Stages are given once") {
  ClusterFlags both = with_hybrid(kSpeedoExample);
  both.hybrid_file = "conf/hybrid.toml";
  CHECK(refused(both).find("--hybrid-file") != std::string::npos);
}

Result<std::vector<HybridStage>> read_toml(const std::string& content) {
  const TempDir folder;
  std::ofstream(folder / "h.toml") << content;
  return read_hybrid_file((folder / "h.toml").string());
}

TEST_CASE("Stages in a TOML file are flags in any spelling") {
  const auto stages = read_toml(
      "[[stage]]\nmax-iter = 100\nsync = true\n\n"
      "[[stage]]\nmaxIter = 200\nmoving_rate = 0.5\nelastic-side = 'master'\nsync = false\n");
  INFO((stages ? "" : stages.error().message));
  REQUIRE(stages);
  REQUIRE(stages->size() == 2);
  CHECK((*stages)[0].flags.max_iter == 100);
  CHECK((*stages)[0].flags.sync);
  CHECK((*stages)[1].flags.moving_rate == 0.5);
  CHECK((*stages)[1].flags.elastic_side == "master");
  CHECK_FALSE((*stages)[1].flags.sync);
}

TEST_CASE("A malformed TOML file is refused with line and column") {
  const std::vector<std::pair<std::string, Words>> cases = {
      {"[[stage]]\nmax-iter = = 3\n", {"h.toml:2:12: "}},
      {"[[stage]\n", {"h.toml:1:"}},
      {"[[\x01stage]]\n", {"h.toml:1:3: "}},
      {"[?]\n", {"h.toml:1:2: "}},
      {"[[stage\x99]]\n", {"h.toml:1:"}},
      {"[[stage]]\nmax-iter = 3\nsnyc = true\n", {"h.toml:3:1: ", "did you mean --sync"}},
      {"[[stage]]\n  drop = 'x'\n", {"h.toml:2:3: ", "--weedout", "'x'"}},
      {"[[stage]]\ndrop = true\n", {"h.toml:2:1: ", "takes a whole number"}},
      {"[[stage]]\nnonsense = false\n", {"h.toml:2:1: ", "nonsense"}},
      {"[[stage]]\ndrop = [1]\n", {"h.toml:2:1: "}},
      {"[[stage]]\n\"a b\" = 1\n", {"h.toml:2:1: "}},
      {"[[stage]]\nhelp = true\n", {"h.toml:2:1: "}},
      {"[[stage]]\nmax_iter = 3\nmax-iter = 4\n", {"h.toml:3:1: 'max-iter' is given twice"}},
      {"[[stage]]\nweedout = 3\ndrop = 3\n", {"h.toml:3:1: 'drop' is given twice"}},
      {"[[stage]]\ntrain = 3\naverage_every = 3\n", {"h.toml:3:1: 'average_every' is given"}},
      {"[[stage]]\nsync = 1\n", {"h.toml:2:1: ", "'sync' takes true or false"}},
      {"[[stage]]\nmax-iter = 3\nstrategy = 'nonsense'\n", {"h.toml:3:1: ", "nonsense"}},
      {"stages = 3\n", {"h.toml:1:1: ", "stages"}},
      {"[stage]\nsync = true\n", {"h.toml:1:", "[[stage]]"}},
      {"stage = [1]\n", {"h.toml:1:10", "[[stage]]"}},
      {"# nothing\n", {"[[stage]]"}}};
  for (const auto& [content, names] : cases) {
    INFO(content);
    const auto stages = read_toml(content);
    REQUIRE_FALSE(stages);
    CHECK(stages.error().code == ErrorCode::kConfig);
    INFO(stages.error().message);
    CHECK(stages.error().message.find('\n') == std::string::npos);
    for (const std::string& name : names) {
      INFO(name);
      CHECK(stages.error().message.find(name) != std::string::npos);
    }
  }
  CHECK(read_hybrid_file("nowhere.toml").error().message.find("nowhere.toml") !=
        std::string::npos);
}

TEST_CASE("A contradiction in a TOML stage is refused with its place") {
  const TempDir folder;
  std::ofstream(folder / "h.toml") << "[[stage]]\nmax-iter = 3\nsync = true\ndrop = 3\n";
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));
  flags.hybrid_file = (folder / "h.toml").string();
  CHECK(refused(flags, ErrorCode::kConfig).find("h.toml:1:1, stage 1: --sync") !=
        std::string::npos);
}

TEST_CASE("The sample file of stages is one") {
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));
  flags.workers = "4";
  flags.hybrid_file = "conf/hybrid.toml";
  const auto stages = make_stages(flags);
  INFO((stages ? "" : stages.error().message));
  REQUIRE(stages);
  REQUIRE(stages->size() == 4);
  CHECK((*stages)[0].strategy.name == "sync");
  CHECK((*stages)[0].lr_scaling == LrScaling::kLinear);
  CHECK((*stages)[1].weight_by_staleness);
  CHECK((*stages)[2].strategy.name == "weedout");
  CHECK((*stages)[3].update.steps_per_run == 10);
}

TEST_CASE("Steps of the data that iterations use: of one worker, or of each in rounds") {
  const auto stages = make_stages(with_hybrid("=maxIter 10 =sync == =maxIter 20"));
  REQUIRE(stages);
  CHECK(steps_used(*stages, 0, 4) == 0);
  CHECK(steps_used(*stages, 7, 4) == 28);
  CHECK(steps_used(*stages, 15, 4) == 45);
  CHECK(steps_used(*stages, 31, 4) == 64);
  CHECK(steps_used({Schedule{}}, 31, 4) == 31);
  CHECK(steps_used(*stages, 3'000'000'015, 4) == 6'000'000'045);
  const auto longer = make_stages(with_hybrid("=maxIter 10 =sync == =maxIter 20 =sync =train 3"));
  REQUIRE(longer);
  CHECK(steps_used(*longer, 12, 4) == 64);
}

}  // namespace
}  // namespace speedo
