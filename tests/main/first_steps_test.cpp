// What somebody meets who uses the programs for the first time.

#include <filesystem>

#include <unistd.h>

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

void expect(const Outcome& outcome, int exit_code, const std::vector<std::string>& names) {
  INFO(outcome.errors);
  CHECK(outcome.exit_code == exit_code);
  for (const std::string& name : names) {
    INFO(name);
    CHECK(outcome.errors.find(name) != std::string::npos);
  }
}

TEST_CASE("An empty value is Caffe's default, and takes no other flag with it") {
  Context place;
  const std::string solver = place.write_solver();
  for (const std::vector<std::string>& empty : std::vector<std::vector<std::string>>{
           {"-stage", ""}, {"-weights", ""}, {"--snapshot="}, {"-stage="}}) {
    INFO(empty.front());
    std::vector<std::string> command = {"speedo", "train", "-solver", solver};
    command.insert(command.end(), empty.begin(), empty.end());
    command.insert(command.end(), {"--max-iter", "2", "--json"});
    const Outcome outcome = place.run(command);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.json()["iterations"] == 2);
  }
  expect(place.run({"speedo-worker", "--master", "", "--threads", "1"}), 2,
         {"--master needs a value"});
}

TEST_CASE("A training that diverges before the tenth time says so, and leaves no model") {
  Context place;
  const std::string solver = place.write_solver("max_iter: 5 test_initialization: false");
  expect(place.run({"speedo", "train", "-solver", solver, "--lr", "1e30"}), 64,
         {"diverged", "not finite", "base_lr"});
  CHECK_FALSE(fs::exists(place.file("snap_iter_5.caffemodel")));
  expect(
      place.run({"speedo", "run", "-solver", solver, "--sync", "--lr", "1e30", "--max-iter", "1"}),
      64, {"diverged", "test loss", "not finite"});
  CHECK_FALSE(fs::exists(place.file("snap_iter_1.caffemodel")));
  CHECK_FALSE(fs::exists(place.file("snap_iter_1.speedo")));
}

TEST_CASE("Snapshots that are due are not written of a training that has diverged") {
  Context place;
  const std::string solver =
      place.write_solver("max_iter: 4 snapshot: 2 test_initialization: false");
  expect(place.run({"speedo", "train", "-solver", solver, "--lr", "1e30"}), 64,
         {"diverged", "so no snapshot of them is written"});
  for (const char* name : {"snap_iter_2.caffemodel", "snap_iter_2.speedo", "snap_iter_4.speedo"}) {
    CHECK_FALSE(fs::exists(place.file(name)));
  }
}

TEST_CASE("Flags that are not built yet are not unknown") {
  Context place;
  const std::string solver = place.write_solver();
  for (const char* flag :
       {"--run-id", "--max-message-bytes", "--log-level"}) {
    INFO(flag);
    for (const char* program : {"speedo-master", "speedo-worker"}) {
      expect(place.run({program, flag, "x"}), 2, {flag, "not built yet"});
    }
  }
}

TEST_CASE("A file without its flag is recognised") {
  Context place;
  const std::string solver = place.write_solver();
  expect(place.run({"speedo", "train", solver}), 2, {"write --solver " + solver + "?"});
  expect(place.run({"speedo", "train", "-solver", solver, "more"}), 2,
         {"'more' belongs to no flag"});
}

TEST_CASE("A cluster that has nothing to train says why") {
  Context place;
  const std::string solver = place.write_solver();
  expect(place.run({"speedo", "run", "-solver", solver, "--max-iter", "0"}), 2,
         {"--max-iter 0", "give 1 or more"});
  expect(place.run({"speedo", "run", "-solver", place.write_solver("max_iter: 0")}), 64,
         {"has max_iter 0"});
  REQUIRE(place.run({"speedo", "run", "-solver", place.write_solver()}).exit_code == 0);
  const Outcome again = place.run({"speedo", "run", "-solver", solver, "--resume=auto"});
  CHECK(again.exit_code == 0);
  CHECK(again.output.find("nothing was left to train at iteration 40") != std::string::npos);
}

TEST_CASE("What cannot be listened on or found is said") {
  Context place;
  const std::string solver = place.write_solver();
  expect(place.run({"speedo-master", "-solver", solver, "--insecure", "--bind", "192.0.2.7"}), 69,
         {"192.0.2.7", "not an address of this machine"});
  expect(place.run({"speedo-master", "-solver", solver, "--redis", "no.such.host.invalid",
                    "--store-timeout", "1"}), 69,
         {"no.such.host.invalid", "cannot resolve the host name"});
}

TEST_CASE("speedo train has the checkpoints of a cluster") {
  Context place;
  const std::string solver = place.write_solver();
  const Outcome first =
      place.run({"speedo", "train", "-solver", solver, "--snapshot-interval", "10",
                 "--test-interval", "10", "--keep-snapshots", "2", "--keep-best", "--resume=auto"});
  INFO(first.errors);
  REQUIRE(first.exit_code == 0);
  CHECK(first.errors.find("a new start") != std::string::npos);
  CHECK(fs::exists(place.file("snap_iter_40.speedo")));
  CHECK(fs::exists(place.file("snap_iter_30.caffemodel")));
  const Outcome longer = place.run(
      {"speedo", "train", "-solver", solver, "--max-iter", "50", "--resume=auto", "--json"});
  REQUIRE(longer.exit_code == 0);
  CHECK(longer.errors.find("Resuming from iteration 40") != std::string::npos);
  CHECK(longer.json()["merges"] == 10);
  const Outcome named = place.run({"speedo", "train", "-solver", solver, "--max-iter", "50",
                                   "--resume=" + place.file("snap_iter_40.speedo")});
  CHECK(named.exit_code == 0);
  expect(place.run({"speedo", "train", "-solver", solver, "--resume"}), 2,
         {"=auto or =FILE.speedo"});
  expect(place.run({"speedo", "train", "-solver", solver, "--batch", "12"}), 2, {"--batch 12"});
  expect(place.run({"speedo", "train", "-solver", solver, "--keep-best"}), 2, {"--keep-snapshots"});
  expect(place.run({"speedo", "train", "-solver", solver, "--keep-best", "--keep-snapshots", "1",
                    "--snapshot-interval", "15"}),
         2, {"--snapshot-interval (15)", "--test-interval (20)"});
}

TEST_CASE("speedo train goes on, or begins with the weights given beside --resume=auto") {
  Context earlier;
  REQUIRE(earlier.run({"speedo", "train", "-solver", earlier.write_solver()}).exit_code == 0);
  struct Start {
    std::string flag, file, says;
  };
  for (const Start& start : {Start{"--weights", "snap_iter_40.caffemodel", "Finetuning from "},
                             Start{"--snapshot", "snap_iter_40.solverstate", "Resuming from "}}) {
    Context place;
    const std::string solver = place.write_solver(), given = earlier.file(start.file);
    const auto train_to = [&](const std::string& iteration) {
      return place.run({"speedo", "train", "-solver", solver, "--max-iter", iteration, start.flag,
                        given, "--resume=auto"});
    };
    expect(train_to("50"), 0, {"there is no checkpoint to go on from", start.says + given});
    const Outcome resumed = train_to("60");
    expect(resumed, 0, {"Resuming from iteration 50"});
    CHECK(resumed.errors.find(start.says + given) == std::string::npos);
    expect(place.run({"speedo", "train", "-solver", solver, start.flag, given,
                      "--resume=" + place.file("snap_iter_50.speedo")}),
           2, {start.flag, "or --resume=auto"});
  }
}

TEST_CASE("A training is tested at its end alone, if that is wanted") {
  Context place;
  const Outcome once = place.run({"speedo", "train", "-solver", place.write_solver(),
                                  "--test-interval", "0", "--json"});
  INFO(once.errors);
  REQUIRE(once.exit_code == 0);
  CHECK(once.json()["tested_iteration"] == once.json()["iterations"]);
  CHECK(once.errors.find("Iteration 0, Testing net") == std::string::npos);
}

TEST_CASE("A cluster without a test_interval is tested at its end, or as the flag says") {
  Context place;
  std::string text = place.read(fs::path(place.write_solver("max_iter: 6")).filename().string());
  const std::string given = "test_interval: 20 ";
  text.erase(text.find(given), given.size());
  const std::string solver = place.write("solver.prototxt", text);
  const Outcome once = place.run({"speedo", "run", "--solver", solver, "--json"});
  INFO(once.errors);
  REQUIRE(once.exit_code == 0);
  CHECK(once.json()["tested_iteration"] == 6);
  CHECK(once.errors.find("Iteration 3, Testing net") == std::string::npos);
  const Outcome often = place.run({"speedo", "run", "--solver", solver, "--test-interval", "3"});
  REQUIRE(often.exit_code == 0);
  CHECK(often.errors.find("Iteration 3, Testing net") != std::string::npos);
  CHECK(place.run({"speedo", "run", "--solver", solver, "--dry-run"}).exit_code == 0);
  expect(place.run({"speedo", "train", "--solver", solver}), 64, {"test_interval is not"});
}

TEST_CASE("A training that goes on is bit for bit one that was never interrupted") {
  Context place;
  const std::string solver = place.write_solver();
  const auto model = [&](const std::string& prefix, const std::vector<std::string>& iterations) {
    const std::string own = place.write(
        prefix + ".prototxt", "net: \"" + place.file("net.prototxt") +
                                  "\" base_lr: 0.05 lr_policy: \"fixed\" momentum: 0.9 max_iter: 1 "
                                  "snapshot_prefix: \"" +
                                  place.file(prefix) + "\" random_seed: 7");
    for (const std::string& last : iterations) {
      REQUIRE(place.run({"speedo", "train", "-solver", own, "--max-iter", last, "--resume=auto"})
                  .exit_code == 0);
    }
    return place.read(prefix + "_iter_" + iterations.back() + ".caffemodel");
  };
  const std::string whole = model("whole", {"30"});
  CHECK_FALSE(whole.empty());
  CHECK(whole == model("parts", {"13", "30"}));
}

TEST_CASE("Level and stage choose layers in a cluster as in one process") {
  Context place;
  place.write("staged.prototxt", R"(name: "staged"
    layer { name: "data" type: "DummyData" top: "data" top: "label"
            dummy_data_param { shape { dim: 8 dim: 12 } shape { dim: 8 }
                               data_filler { type: "gaussian" } data_filler { type: "constant" } } }
    layer { name: "small" type: "InnerProduct" bottom: "data" top: "ip"
            exclude { stage: "big" } inner_product_param { num_output: 3 } }
    layer { name: "big" type: "InnerProduct" bottom: "data" top: "ip"
            include { stage: "big" } inner_product_param { num_output: 5 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
  const std::string solver =
      place.write("staged_solver.prototxt", "net: \"" + place.file("staged.prototxt") +
                                                "\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 3 "
                                                "snapshot_prefix: \"" +
                                                place.file("staged") + "\"");
  for (const char* command : {"train", "run"}) {
    INFO(command);
    const Outcome outcome = place.run({"speedo", command, "-solver", solver, "-stage", "big"});
    INFO(outcome.errors);
    REQUIRE(outcome.exit_code == 0);
    const std::string model = place.read("staged_iter_3.caffemodel");
    CHECK(model.find("big") != std::string::npos);
    CHECK(model.find("small") == std::string::npos);
  }
}

TEST_CASE("More workers than processors are warned of, one is not several") {
  Context place;
  const std::string solver = place.write_solver();
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::string workers = std::to_string(processors + 2);
  const Outcome crowd = place.run({"speedo", "run", "-solver", solver, "--workers", workers});
  CHECK(crowd.errors.find(workers + " workers share ") != std::string::npos);
  const Outcome one = place.run({"speedo", "run", "-solver", solver});
  CHECK(one.errors.find("1 workers") == std::string::npos);
  CHECK(one.errors.find("Started 1 worker process, logs in ") != std::string::npos);
}

TEST_CASE("Flags of SpeeDO that have no meaning here are refused by each program") {
  Context place;
  const std::string solver = place.write_solver();
  for (std::vector<std::string> command :
       {std::vector<std::string>{"speedo", "run", "--solver", solver},
        std::vector<std::string>{"speedo-master", "--solver", solver},
        std::vector<std::string>{"speedo-worker", "--master", "speedo://127.0.0.1:1"}}) {
    INFO(command[0]);
    command.insert(command.end(), {"--baseDir", place.folder().string()});
    const Outcome refused = place.run(command);
    CHECK(refused.exit_code == 2);
    CHECK(refused.error_line().find("relative to") != std::string::npos);
  }
}

TEST_CASE("Weights of which no layer has any are refused by speedo test") {
  Context place;
  const std::string solver = place.write_solver();
  REQUIRE(place.run({"speedo", "train", "-solver", solver}).exit_code == 0);
  const std::string other = place.write("other.prototxt", R"(name: "other"
      layer { name: "in" type: "DummyData" top: "in" dummy_data_param { shape { dim: 2 dim: 12 } } }
      layer { name: "elsewhere" type: "InnerProduct" bottom: "in" top: "out"
              inner_product_param { num_output: 3 } })");
  const Outcome refused = place.run({"speedo", "test", "-model", other, "-weights",
                                     place.file("snap_iter_40.caffemodel"), "-iterations", "1"});
  CHECK(refused.exit_code == 78);
  CHECK(refused.error_line().find("elsewhere") != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
