// The planner's files: descriptions of clusters in, JSON and charts out.

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/flags/simulate_plan_flags.hpp"
#include "measure/calibrate/simulate_calibrate.hpp"
#include "measure/simulate/simulate_plan_chart.hpp"
#include "measure/simulate/simulate_plan_file.hpp"
#include "measure/simulate/simulate_plan_report.hpp"
#include "plan_support.hpp"

namespace speedo {
namespace {

constexpr const char* kLeast =
    "[net]\nparameters = 1000\nbatch = 10\n"
    "[[machine]]\nname = \"m\"\nstep_seconds = 0.5\n";

// The least with a line more in its [net].
std::string with_net(const std::string& line) {
  const std::string text = kLeast;
  const std::size_t machine = text.find("[[machine]]");
  return text.substr(0, machine) + line + text.substr(machine);
}

std::string error_of(const std::string& text) {
  const auto cluster = parse_cluster(text, "c.toml");
  if (cluster) return "";
  CHECK(cluster.error().code == ErrorCode::kConfig);
  return cluster.error().message;
}

TEST_CASE("The examples are read") {
  const std::string folder = std::string(SPEEDO_SOURCE_DIR) + "/examples/simulate";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    CAPTURE(entry.path().string());
    const auto cluster = read_cluster(entry.path());
    if (!cluster) FAIL(cluster.error().message);
    CHECK(sim::plan_of(*cluster, "async", 2).speed_up > 0.0);
    files += 1;
  }
  CHECK(files == 5);
}

TEST_CASE("What is left out has its default") {
  const auto cluster = parse_cluster(kLeast, "c.toml");
  REQUIRE(cluster);
  CHECK(cluster->store.machine == "m");
  CHECK(cluster->machines[0].step_seconds == std::vector<double>{0.5});
  CHECK(cluster->machines[0].count == 1);
  CHECK(cluster->net.histories == 1);
}

TEST_CASE("A faulty description is refused with file, line and column") {
  const std::string least = kLeast;
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"[net\n", "c.toml:1:5: "},
      {"", "c.toml:"},
      {"[net]\nparameters = 5\nbatch = 1\n", "no [[machine]]"},
      {"machine = 3\n[net]\nparameters = 5\nbatch = 1\n", "c.toml:1:11: "},
      {least + "step_second = 1\n", "c.toml:7:1: [[machine]]: unknown key 'step_second'"},
      {least + "cores = -1\n", "c.toml:7:9: [[machine]]: cores must be a number greater than 0"},
      {least + "cores = nan\n", "c.toml:7:9: "},
      {least + "cores = inf\n", "c.toml:7:9: "},
      {least + "count = 0\n", "c.toml:7:9: [[machine]]: count must be a whole number"},
      {least + "count = 1.5\n", "c.toml:7:9: "},
      {least + "sharing = []\n", "c.toml:7:11: "},
      {least + "sharing = [1, \"x\"]\n", "c.toml:7:15: "},
      {least + "[[machine]]\nname = \"m\"\nstep_seconds = 1\n", "c.toml:7:1: another machine"},
      {least + "[[machine]]\nname = \"n\"\nstep_seconds = 1\nstep_spread = 11\n",
       "c.toml:10:15: [[machine]]: step_spread must be at most 10"},
      {least + "[[machine]]\nname = \"n\"\nstep_seconds = [1, 1e-10]\n",
       "c.toml:9:16: [[machine]]: step_seconds must be at least 1e-09"},
      {least + "[[machine]]\nname = \"n\"\n", "c.toml:7:1: [[machine]] has no step_seconds"},
      {least + "[store]\nmachine = \"n\"\n", "c.toml:8:11: [store]: no machine is named 'n'"},
      {least + "[store]\nspeed = 1\n", "c.toml:8:1: [store]: unknown key 'speed'"},
      {least + "[strore]\nmachine = \"m\"\n", "unknown key 'strore', did you mean store?"},
      {least + "[network]\nlatency_seconds = \"fast\"\n", "c.toml:8:19: "},
      {least + "[net]\n", "c.toml:7:"},
      {with_net("buckets = 1\n"), "c.toml:4:11: [net]: buckets must be a list of lists"},
      {with_net("buckets = [[1000, 0]]\n"), "c.toml:4:12: [net]: buckets must be lists of 3"},
      {with_net("buckets = [[1000, 0, -1]]\n"), "c.toml:4:22: "},
      {with_net("buckets = [[1000, 0, 1, 5]]\n"), "c.toml:4:12: [net]: buckets must be lists of 3"},
      {with_net("buckets = [[1000, 0, 1, 5, 0, 9, 0.1]]\n"), "4:28: [net]: a bucket's product"},
      {with_net("buckets = [[1000, 0, 1, 5, 99, 99, 0.1]]\n"), "has a product of 99 x 99"},
      {with_net("buckets = [[1.5, 0, 1]]\n"), "c.toml:4:13: [net]: a bucket has a whole number"},
      {with_net("buckets = [[999, 0, 1]]\n"), "999 parameters together, the net has 1000"},
      {with_net("batches = [[8]]\n"), "c.toml:4:12: [net]: batches must be lists of 2"},
      {with_net("batches = [[8, 0]]\n"), "c.toml:4:16: "},
      {least + "[store]\nshards = -1\n", "c.toml:8:10: [store]: shards must be a whole number"},
      {least + "[store]\nshards = 999\n", "c.toml: store: shards is 999"},
      {least + "[store]\nmachines = [1]\n", "c.toml:8:13: [store]: machines must be a list"},
      {least + "[store]\nmachines = [\"x\"]\n", "no machine is named 'x'"},
      {least + "[worker]\ncodec = \"zip\"\n", "c.toml: worker: codec 'zip': allowed are none"},
      {least + "[worker]\nshared_memory = 1\n", "c.toml:8:17: [worker]: shared_memory must be"},
      {least + "[[codec]]\nname = \"int8\"\n", "c.toml:7:1: [[codec]] has no ratio"},
      {least + "[codec]\nname = \"int8\"\n", "c.toml:7:1: codecs are written as [[codec]]"},
      {with_net("clips = 1\n"), "c.toml:4:9: [net]: clips must be true or false"},
  };
  for (const auto& [text, wanted] : faults) {
    CAPTURE(text, error_of(text));
    CHECK(error_of(text).find(wanted) != std::string::npos);
  }
  CHECK(read_cluster("/nonexistent/cluster.toml").error().code == ErrorCode::kConfig);
}

TEST_CASE("What is written is read back the same") {
  sim::ClusterCosts cluster = sim::ideal_cluster();
  cluster.title = "a \"quoted\" title";
  cluster.machines[0].sharing = {1.0, 0.75};
  cluster.machines[0].step_seconds = {0.25, 0.125};
  cluster.store.busy_record_seconds = 0.5;
  cluster.worker.crowded_seconds = 0.0625;
  cluster.worker.client_bytes_per_second = 1e9;
  cluster.net.buckets = {{.parameters = 50000, .needed = 0.125, .final = 0.875},
                         {.parameters = 200000,
                          .needed = 0.25,
                          .final = 0.5,
                          .factors = {.rows = 20, .height = 1000, .width = 150},
                          .product = 0.0625}};
  cluster.net.update = 0.0625;
  cluster.net.clips = true;
  cluster.master.merges_ahead = false;
  cluster.master.rule_seconds = 0.75;
  cluster.master.product_seconds = 0.25;
  cluster.machines[0].mixed = 0.5;
  cluster.net.batches = {{.batch = 20, .times = 1.5}};
  cluster.store.shards = 3;
  cluster.store.machines = {"worker", "head"};
  cluster.store.copies = false;
  cluster.worker.codec = "int8";
  cluster.worker.shares_memory = true;
  cluster.worker.memory_bytes_per_second = 5e9;
  cluster.codecs = {{.name = "int8", .ratio = 3.5, .encode_bytes_per_second = 2e9}};
  const std::string text = to_toml(cluster, "by a test");
  const auto again = parse_cluster(text, "again.toml");
  if (!again) FAIL(again.error().message);
  CHECK(again->title == cluster.title);
  CHECK(again->worker.crowded_seconds == 0.0625);
  REQUIRE(again->net.buckets.size() == 2);
  CHECK(again->net.buckets[1].parameters == 200000);
  CHECK(again->net.buckets[1].final == 0.5);
  CHECK(again->net.buckets[0].factors.rows == 0);
  CHECK(again->net.buckets[1].factors == cluster.net.buckets[1].factors);
  CHECK(again->net.buckets[1].product == 0.0625);
  CHECK(again->master.product_seconds == 0.25);
  CHECK(again->net.clips);
  CHECK(again->master.rule_seconds == 0.75);
  CHECK(again->machines[0].mixed == 0.5);
  CHECK_FALSE(again->master.merges_ahead);
  CHECK(again->net.batches[0].times == 1.5);
  CHECK(again->store.shards == 3);
  CHECK(again->store.machines == cluster.store.machines);
  CHECK_FALSE(again->store.copies);
  CHECK(again->worker.codec == "int8");
  CHECK(again->worker.shares_memory == true);
  CHECK(again->worker.memory_bytes_per_second == 5e9);
  CHECK(again->codecs[0].encode_bytes_per_second == 2e9);
  CHECK(to_toml(*again, "by a test") == text);
}

PlanReport report_of(bool trained) {
  PlanReport report;
  report.cluster = sim::ideal_cluster();
  report.cluster.title = "A <b> & \"c\"";
  report.seed = 3;
  if (trained) report.baseline = PlanBaseline{0.5, 10.0, {{10.0, 10, 0.5F, 0.9F}}};
  for (const char* schedule : {"sync", "async"}) {
    for (const std::uint64_t workers : {1U, 2U, 4U}) {
      PlanRow row;
      row.schedule = schedule;
      row.workers = workers;
      row.result = sim::plan_of(report.cluster, schedule, workers, 1, 20);
      if (trained && workers > 1) row.speed_up_to_loss = row.seconds_to_loss = 2.0;
      report.rows.push_back(row);
    }
  }
  return report;
}

TEST_CASE("The JSON has every figure of every plan") {
  const auto json = nlohmann::json::parse(to_json(report_of(false)));
  CHECK(json.at("seed") == 3);
  CHECK(json.at("sequential_images_per_second") == 10.0);
  CHECK_FALSE(json.contains("one_worker"));
  REQUIRE(json.at("plans").size() == 6);
  for (const auto& plan : json.at("plans")) {
    CHECK(plan.at("schedule").is_string());
    for (const char* key :
         {"workers", "iterations", "seconds", "iterations_per_second", "images_per_second",
          "speed_up", "mean_staleness", "contributions", "discarded", "bytes_per_iteration",
          "bytes_per_second", "store_busy", "master_busy", "computing", "exchanging"}) {
      CAPTURE(key);
      CHECK(plan.at(key).is_number());
    }
    CHECK_FALSE(plan.contains("curve"));
  }
  const auto trained = nlohmann::json::parse(to_json(report_of(true)));
  CHECK(trained.at("one_worker").at("loss") == 0.5);
  CHECK(trained.at("plans")[0].at("seconds_to_loss").is_null());
  CHECK(trained.at("plans")[1].at("speed_up_to_loss") == 2.0);
  CHECK(trained.at("plans")[1].at("curve").is_array());
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    count += 1;
  }
  return count;
}

TEST_CASE("The chart has a line and a legend entry a schedule, and nothing that breaks XML") {
  const std::string svg = to_svg(report_of(false));
  CHECK(svg.rfind("<svg ", 0) == 0);
  CHECK(svg.find("A &lt;b&gt; &amp; &quot;c&quot;") != std::string::npos);
  CHECK(count_of(svg, "<path class=\"line\"") == 4);
  CHECK(svg.find("prefers-color-scheme: dark") != std::string::npos);
  CHECK(svg.find(">workers<") != std::string::npos);
  CHECK(svg.find(">speed-up<") != std::string::npos);
  CHECK(count_of(svg, "<text") == count_of(svg, "</text>"));
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(to_svg(report_of(true)).find("time to loss 0.5") != std::string::npos);
}

TEST_CASE("The table has a line a plan") {
  const std::string table = to_table(report_of(false));
  CHECK(count_of(table, "\n") == 10);
  CHECK(table.find("Exchange: one store on head, the master merges; codec none\n") !=
        std::string::npos);
}

TEST_CASE("Flags that contradict each other are refused") {
  PlanFlags flags;
  CHECK_FALSE(check(flags));
  flags.cluster = "c.toml";
  CHECK(check(flags));
  SECTION("two clusters") { flags.calibrate = true; }
  SECTION("a net to measure") { flags.solver = "s"; }
  SECTION("a file to write") { flags.write = "w"; }
  SECTION("a time to measure") { flags.measure_seconds = 1.0; }
  SECTION("a loss without training") { flags.loss = 0.5; }
  SECTION("codecs without a recommendation") { flags.lossy = true; }
  flags.recommend = !flags.lossy;
  SECTION("a recommendation by loss") { flags.train = "s"; }
  SECTION("a chart of it") { flags.svg = "c.svg"; }
  SECTION("gradients beside it") { flags.gradient_only = true; }
  SECTION("replicas of nothing") {
    flags.recommend = false;
    flags.replicated = true;
  }
  SECTION("replicas that train") {
    flags.recommend = false;
    flags.gradient_only = flags.replicated = true;
    flags.train = "s";
  }
  SECTION("a codec, and any") {
    flags.lossy = true;
    flags.codec = "int8";
  }
  CHECK_FALSE(check(flags));
}

TEST_CASE("Measurements take a time that can be measured") {
  PlanFlags flags;
  flags.calibrate = true;
  flags.solver = "s";
  for (const double seconds : {0.05, 1.5, 3600.0}) {
    flags.measure_seconds = seconds;
    CHECK(check(flags));
  }
  for (const double seconds : {0.0, -1.0, 0.04, 3601.0, std::nan(""), HUGE_VAL}) {
    flags.measure_seconds = seconds;
    CHECK_FALSE(check(flags));
  }
}

TEST_CASE("Without rounds every worker has some runs, unless the merges are given") {
  PlanFlags flags;
  flags.iterations = 300;
  CHECK(merges_of(flags, false, 4) == 300);
  CHECK(merges_of(flags, false, 128) == 12 * 128);
  CHECK(merges_of(flags, true, 128) == 300);
  SECTION("given") { flags.iterations_given = true; }
  SECTION("of a net that is trained") { flags.train = "s"; }
  CHECK(merges_of(flags, false, 128) == 300);
}

TEST_CASE("Steps that others disturbed, or that threads slow down, are in doubt") {
  CHECK(doubts_of({{1, 1.0}, {2, 0.6}}, 1.1).empty());
  const auto disturbed = doubts_of({{1, 1.0}, {2, 0.6}}, 1.3);
  REQUIRE(disturbed.size() == 1);
  CHECK(disturbed[0].find("1300 ms by the clock and 1000 ms of a processor") !=
        std::string::npos);
  const auto slower = doubts_of({{1, 1.0}, {2, 0.6}, {4, 1.2}}, 1.0);
  REQUIRE(slower.size() == 1);
  CHECK(slower[0].find("1200 ms with 4 threads and 1000 ms with one") != std::string::npos);
  Calibration calibration;
  calibration.doubts = slower;
  CHECK(to_text(calibration).find("In doubt: " + slower[0]) != std::string::npos);
}

TEST_CASE("Worker counts are a list or a range") {
  CHECK(*parse_worker_counts("4,1,2,2") == std::vector<std::uint64_t>{1, 2, 4});
  CHECK(*parse_worker_counts("2:5") == std::vector<std::uint64_t>{2, 3, 4, 5});
  for (const char* bad : {"", "0", "5:2", "1,x", "1:", ":3", "99999", "-1", "1,,2", "1.5"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_worker_counts(bad));
  }
}

}  // namespace
}  // namespace speedo
