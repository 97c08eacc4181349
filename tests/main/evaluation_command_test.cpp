// What `speedo test` tells of a classifier, beside what the net's own Accuracy layer says.

#include <csignal>
#include <filesystem>
#include <string>

#include "main/command_support.hpp"

namespace speedo::test {
namespace {

namespace fs = std::filesystem;

// A net of three classes and its data, hardly trained.
struct Classifier {
  Classifier() {
    const fs::path from = fs::path(SPEEDO_SOURCE_DIR) / "tests/golden/data/cli";
    for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
      fs::copy(entry.path(), place.folder());
    }
    const Outcome trained = run("train -solver solver.prototxt --max-iter 2 --lr 0.02");
    INFO(trained.errors);
    REQUIRE(trained.exit_code == 0);
  }
  Outcome run(const std::string& arguments) {
    return place.run(
        {"/bin/sh", "-c",
         "cd " + place.folder().string() + " && " + program("speedo") + " " + arguments});
  }
  Outcome test(const std::string& arguments) {
    return run("test -model net.prototxt -weights cli_iter_2.caffemodel -iterations 4 " +
               arguments);
  }

  Context place;
};

TEST_CASE("test reports classes, confusion and top-k as text, JSON and a page") {
  Classifier net;
  net.place.write("names.txt", "first\nthe second\n<third>\n");
  const Outcome tested = net.test(
      "--top-k 1,2,3 --labels names.txt --report-json report.json --report-html report.html "
      "--json");
  INFO(tested.errors);
  REQUIRE(tested.exit_code == 0);
  const auto report = nlohmann::json::parse(net.place.read("report.json"));
  const double accuracy = tested.json()["accuracy"];
  CHECK(accuracy < 1.0);
  CHECK(report["accuracy"].get<double>() == Approx(accuracy).margin(1e-6));
  CHECK(report["samples"] == 40);
  CHECK(report["top_k"]["1"].get<double>() <= report["top_k"]["2"].get<double>());
  CHECK(report["top_k"]["3"] == 1.0);
  CHECK(report["classes"][1]["label"] == "the second");
  int counted = 0, hits = 0;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      counted += report["confusion"][row][column].get<int>();
    }
    hits += report["confusion"][row][row].get<int>();
  }
  CHECK(counted == 40);
  CHECK(hits == Approx(40.0 * accuracy));
  const std::string page = net.place.read("report.html");
  CHECK(page.find("&lt;third&gt;") != std::string::npos);
  CHECK(page.find("http") == page.find("http://www.w3.org/2000/svg"));
  CHECK(page.find("src=") == std::string::npos);

  const Outcome text = net.test("--top-k 1");
  REQUIRE(text.exit_code == 0);
  CHECK(text.output.starts_with("samples 40, top-1 0."));
  const Outcome named = net.test("--scores ip2,label --top-k 1");
  CHECK(named.output.substr(0, 200) == text.output.substr(0, 200));
  CHECK(net.test("").output.find("top-1") == std::string::npos);
}

TEST_CASE("a test that is stopped says of how many batches its scores are") {
  Classifier net;
  Process process = net.place.start(
      {"/bin/sh", "-c",
       "cd " + net.place.folder().string() + " && exec " + program("speedo") +
           " test -model net.prototxt -weights cli_iter_2.caffemodel -iterations 100000000"
           " --report-json report.json"});
  REQUIRE(process.says("Batch 2, "));
  process.signal(SIGINT);
  const Outcome stopped = Context::finish(process);
  INFO(stopped.errors);
  CHECK(stopped.exit_code == 0);
  const int samples = nlohmann::json::parse(net.place.read("report.json"))["samples"];
  const std::string sentence =
      "Stopped after " + std::to_string(samples / 10) + " of 100000000 batches";
  CHECK(stopped.errors.find(sentence) != std::string::npos);
  CHECK(net.test("").errors.find("Stopped after") == std::string::npos);
}

TEST_CASE("what an evaluation cannot be made of is told before the first batch") {
  Classifier net;
  net.place.write("two.txt", "a\nb\n");
  net.place.write("gap.txt", "a\n\nb\n");
  const auto refused = [&](const std::string& arguments, int code, const std::string& words) {
    const Outcome outcome = net.test(arguments);
    INFO(outcome.errors);
    CHECK(outcome.exit_code == code);
    CHECK(outcome.error_line().find(words) != std::string::npos);
    CHECK(outcome.errors.find("Batch 0") == std::string::npos);
  };
  refused("--top-k 4", 2, "the net has 3 classes");
  refused("--top-k 0", 2, "whole numbers");
  refused("--top-k 1,x", 2, "whole numbers");
  refused("--labels two.txt", 78, "names 2 classes, but the net has 3");
  refused("--labels gap.txt", 65, "line 2");
  refused("--labels none.txt", 65, "none.txt");
  refused("--scores ip2,nothing", 64, "no blob 'nothing'");
  refused("--scores ip2", 2, "SCORES,LABELS");
  refused("--scores ip2,data", 64, "there must be 10 labels, one for each 3 along axis 1");
  refused("--report-html none/report.html", 73, "none/report.html");
  refused("--report-json none/report.json", 73, "none/report.json");
  refused("--labels two.txt --report-html two.txt", 2, "would replace two.txt");
}

}  // namespace
}  // namespace speedo::test
