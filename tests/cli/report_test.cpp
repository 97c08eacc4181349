#include "cli/report/report.hpp"

#include <limits>

#include <nlohmann/json.hpp>

#include "cli/report/live_status.hpp"
#include "cli/report/rate_meter.hpp"
#include "cli/report/svg.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using std::chrono::seconds;

TEST_CASE("The JSON report has all its keys, null where nothing is known") {
  const auto object = nlohmann::json::parse(to_json(Report{}));
  for (const char* key : {"iterations",
                          "merges",
                          "loss",
                          "accuracy",
                          "seconds",
                          "images_per_second",
                          "workers",
                          "rejected",
                          "discarded",
                          "ignored",
                          "mean_staleness",
                          "stage",
                          "term",
                          "restarts",
                          "parser_deaths",
                          "data_wait_seconds",
                          "compute_seconds",
                          "exchange_seconds",
                          "forward_seconds",
                          "backward_seconds",
                          "wait_seconds",
                          "predicted_memory_bytes",
                          "peak_memory_bytes"}) {
    INFO(key);
    REQUIRE(object.contains(key));
    CHECK(object[key].is_null());
  }
}

TEST_CASE("The JSON report holds the figures, and null for what JSON cannot say") {
  Report report;
  report.iterations = 10;
  report.loss = std::numeric_limits<double>::quiet_NaN();
  report.accuracy = 0.5;
  report.seconds = std::numeric_limits<double>::infinity();
  report.snapshot = "a\"b\xff";  // not even UTF-8
  const std::string text = to_json(report);
  CHECK(text.find('\n') == std::string::npos);
  const auto object = nlohmann::json::parse(text);
  CHECK(object["iterations"] == 10);
  CHECK(object["loss"].is_null());
  CHECK(object["accuracy"] == 0.5);
  CHECK(object["seconds"].is_null());
}

TEST_CASE("An accuracy of an earlier iteration says of which") {
  Report report;
  report.accuracy = 0.5;
  report.iterations = report.tested_iteration = 40;
  CHECK(to_text(report).find("accuracy 0.5000") == 0);
  CHECK(to_text(report).find("at iteration") == std::string::npos);
  report.iterations = 57;
  CHECK(to_text(report).find("accuracy 0.5000 at iteration 40") == 0);
  CHECK(nlohmann::json::parse(to_json(report))["tested_iteration"] == 40);
}

TEST_CASE("A job that was found complete has no speed") {
  Report report;
  report.iterations = 40;
  report.merges = 0;
  report.complete = true;
  report.seconds = report.images_per_second = 0.0;
  report.workers = 0;
  report.snapshot = "net_iter_40.caffemodel";
  CHECK(to_text(report) ==
        "nothing was left to train at iteration 40, model in net_iter_40.caffemodel");
  CHECK(shows_training(to_text(report), false));
}

TEST_CASE("A training that was stopped before its first merge says that nothing was trained") {
  Report report;
  report.iterations = 40;
  report.merges = 0;
  report.seconds = 3.0;
  report.workers = 2;
  CHECK(to_text(report) == "nothing was trained at iteration 40");
  CHECK_FALSE(shows_training(to_text(report), false));
  CHECK_FALSE(shows_training(to_json(report), true));
  CHECK_FALSE(shows_training("", false));
  report.merges = 1;
  CHECK(shows_training(to_text(report), false));
  CHECK(shows_training(to_json(report), true));
}

TEST_CASE("The report for people begins with the accuracy") {
  Report report;
  report.accuracy = 0.97641;
  report.loss = 0.125;
  report.iterations = 600;
  report.seconds = 1.25;
  report.images_per_second = 24000.4;
  report.workers = 1;
  CHECK(to_text(report) ==
        "accuracy 0.9764, loss 0.125, 600 iterations in 1.2 s, 24000 images/s, 1 worker");
  CHECK(to_text(Report{}).empty());
  // One that went on from an earlier training says what it has done, and where it is.
  report.merges = 50;
  CHECK(to_text(report) ==
        "accuracy 0.9764, loss 0.125, 50 iterations in 1.2 s, now at iteration 600, "
        "24000 images/s, 1 worker");
}

TEST_CASE("The phases of the steps are shares of their time") {
  Report report;
  CHECK(phases_text(report).empty());
  report.data_wait_seconds = 0.1;
  report.compute_seconds = 9.9;
  CHECK(phases_text(report) ==
        "1.0 % of the time waiting for data, 99.0 % computing");
  report.compute_seconds = 7.4;
  report.exchange_seconds = 2.5;
  CHECK(phases_text(report) ==
        "1.0 % of the time waiting for data, 74.0 % computing, 25.0 % exchanging");
  report.forward_seconds = 2.4;
  report.backward_seconds = 5.0;
  report.wait_seconds = 10.0;
  CHECK(phases_text(report) ==
        "0.5 % of the time waiting for data, 12.0 % forward, 25.0 % backward, 12.5 % exchanging, "
        "50.0 % waiting for master and other workers");
}

TEST_CASE("The peak of this process goes into a report") {
  Report report;
  add_peak_memory(report);
  CHECK(report.peak_memory_bytes.value_or(0) > 1 << 20);
}

TEST_CASE("speedo run adds what the master does not know of its workers") {
  const auto object = nlohmann::json::parse(with_workers(to_json(Report{}), true,
                                                       {.restarts = 2,
                                                        .predicted_memory_bytes = 7,
                                                        .peak_memory_bytes = 8}));
  CHECK(object["restarts"] == 2);
  CHECK(object.contains("accuracy"));
  CHECK(object["predicted_memory_bytes"] == 7);
  CHECK(object["peak_memory_bytes"] == 8);
  CHECK(with_workers("accuracy 0.5", false, {}) == "accuracy 0.5");
  CHECK(with_workers("accuracy 0.5", false, {.restarts = 1}) ==
        "accuracy 0.5, 1 restart of workers");
}

TEST_CASE("The live line names the stage of a hybrid, and says when training is paused") {
  LiveStatus status{120, 1000, 35.2, true, 2252.8, 0.5, 1};
  status.stage = 1;
  status.stages = 3;
  CHECK(format_live_status(status, 120, false) ==
        "iteration 120/1000  stage 2/3  35.2 merges/s  2253 images/s  loss 0.5000  1 worker  ETA "
        "0:25");
  status.paused = true;
  CHECK(format_live_status(status, 120, false) ==
        "iteration 120/1000  stage 2/3  PAUSED for want of workers  loss 0.5000  1 worker");
}

TEST_CASE("The live line tells iteration, speed, loss, workers and the time left") {
  LiveStatus status{120, 1000, 35.2, true, 2252.8, 0.12345, 3};
  CHECK(format_live_status(status, 120, false) ==
        "iteration 120/1000  35.2 merges/s  2253 images/s  loss 0.1235  3 workers  ETA 0:25");
  status.workers = 1;
  status.merges = false;
  status.loss.reset();
  CHECK(format_live_status(status, 120, false) ==
        "iteration 120/1000  35.2 iter/s  2253 images/s  1 worker  ETA 0:25");
  CHECK(format_live_status(LiveStatus{}, 80, false) == "iteration 0");
}

TEST_CASE("The live line fits the terminal, however narrow, and colours only its head") {
  const LiveStatus status{120, 1000, 35.2, true, 2252.8, 0.5, 3};
  for (int width = 0; width < 90; ++width) {
    CHECK(static_cast<int>(format_live_status(status, width, false).size()) < std::max(width, 2));
  }
  CHECK(format_live_status(status, 20, false) == "iteration 120/1000");
  CHECK(format_live_status(status, 79, false) ==
        "iteration 120/1000  35.2 merges/s  loss 0.5000  3 workers  ETA 0:25");
  CHECK(format_live_status(status, 20, true) == "\x1b[1miteration 120/1000\x1b[0m");
}

TEST_CASE("Durations") {
  CHECK(format_duration(-1.0) == "0:00");
  CHECK(format_duration(5.4) == "0:05");
  CHECK(format_duration(754.0) == "12:34");
  CHECK(format_duration(3723.0) == "1:02:03");
}

TEST_CASE(
    "The rate meter forgets what was longer ago than two windows, the overall rate does not") {
  RateMeter meter;
  CHECK(meter.recent().iterations_per_second == 0.0);
  meter.start(seconds(100), 50, 500);
  meter.update(seconds(102), 60, 600);  // 5 a second
  CHECK(meter.overall().iterations_per_second == Approx(5.0));
  CHECK(meter.overall().images_per_second == Approx(50.0));
  for (int i = 1; i <= 10; ++i) {  // then 50 a second
    meter.update(seconds(102 + i), 60 + static_cast<std::uint64_t>(i) * 50, 600);
  }
  CHECK(meter.recent().iterations_per_second == Approx(50.0));
  CHECK(meter.overall().iterations_per_second == Approx(510.0 / 12.0));
  CHECK(meter.seconds() == Approx(12.0));
}

TEST_CASE("Markup is XML whatever bytes a name has: what is not UTF-8 is replaced") {
  const std::string replaced = "\xef\xbf\xbd";
  CHECK(markup_escaped("a\xff.log") == "a" + replaced + ".log");
  CHECK(markup_escaped("\xc3\xbc<&>\"\n") == "\xc3\xbc&lt;&amp;&gt;&quot; ");
  CHECK(markup_escaped("\xed\xa0\x80").find('\xed') == std::string::npos);  // half a pair
  CHECK(markup_escaped("end\xc3") == "end" + replaced);
  CHECK(markup_escaped("\xef\xbf\xbf|\xef\xbf\xbe") == replaced + "|" + replaced);  // none of XML
  CHECK(markup_escaped("\\ \\u0041") == "\\ \\u0041");
}

}  // namespace
}  // namespace speedo
