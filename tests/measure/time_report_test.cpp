#include "measure/time_report.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace speedo {
namespace {

TimeReport::Layer convolution() {
  TimeReport::Layer layer;
  layer.name = "conv1";
  layer.type = "Convolution";
  layer.kernel = "jit";
  layer.from_layout = "plain";
  layer.layout = "blocked 16";
  layer.forward_ms = 1.0;
  layer.backward_ms = 4.0;
  layer.forward_flops = 100e6;
  layer.backward_flops = 200e6;
  return layer;
}

TimeReport example() {
  TimeReport report;
  report.net = "net";
  report.compute = "1 thread";
  report.trains = true;
  report.iterations = 3;
  report.images = 8;
  report.sgemm_gflops = 200.0;
  report.forward_ms = 1.5;
  report.backward_ms = 4.25;
  report.update_ms = 0.25;
  report.step_ms = 6.0;
  report.layers.push_back(convolution());
  TimeReport::Layer relu;
  relu.name = "relu1";
  relu.type = "ReLU";
  relu.fused = {true, false};
  relu.backward_ms = 0.25;
  report.layers.push_back(relu);
  TimeReport::Layer reorder;
  reorder.name = "conv1_reorder";
  reorder.type = "Reorder";
  reorder.is_reorder = true;
  reorder.forward_ms = 0.5;
  report.layers.push_back(reorder);
  return report;
}

TEST_CASE("What is least disturbed is the longest of the shortest tenth") {
  CHECK(undisturbed({}) == 0.0);
  CHECK(undisturbed({5.0, 2.0, 3.0}) == 2.0);
  CHECK(undisturbed({9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 10.0}) == 2.0);
}

TEST_CASE("The median of an even number of values is the mean of the middle two") {
  CHECK(median({}) == 0.0);
  CHECK(median({3.0}) == 3.0);
  CHECK(median({5.0, 1.0, 3.0}) == 3.0);
  CHECK(median({7.0, 1.0, 3.0, 5.0}) == 4.0);
}

TEST_CASE("A report's totals: all operations over the whole step, reorders on their own") {
  const TimeReport report = example();
  CHECK(report.flops() == 300e6);
  CHECK(report.gflops() == Approx(50.0));
  CHECK(report.reorder_ms() == 0.5);
  CHECK(report.images_per_second() == Approx(8.0 / 0.006));
}

TEST_CASE("JSON: rates and shares of each pass, null where operations are not counted") {
  const auto object = nlohmann::json::parse(to_json(example()));
  CHECK(object["step_ms"] == 6.0);
  CHECK(object["forward_backward_ms"] == 5.75);
  CHECK(object["share_of_sgemm"].get<double>() == Approx(0.25));
  CHECK(object["train"] == true);
  const auto& convolution = object["layers"][0];
  CHECK(convolution["forward_gflops"].get<double>() == Approx(100.0));
  CHECK(convolution["forward_share"].get<double>() == Approx(0.5));
  CHECK(convolution["backward_share"].get<double>() == Approx(0.25));
  CHECK(convolution["from_layout"] == "plain");
  CHECK(convolution["layout"] == "blocked 16");
  CHECK(convolution["kernel"] == "jit");
  CHECK(convolution["fused"] == "");
  const auto& relu = object["layers"][1];
  CHECK(relu["fused"] == "forward");
  CHECK(relu["forward_gflops"].is_null());
  CHECK(relu["backward_share"].is_null());
  CHECK(object["layers"][2]["reorder"] == true);
}

TEST_CASE("A net without counted operations has no share") {
  TimeReport report = example();
  report.layers.clear();
  CHECK(nlohmann::json::parse(to_json(report))["share_of_sgemm"].is_null());
  CHECK(to_text(report).find("of sgemm (") == std::string::npos);
}

TEST_CASE("The table names kernel and layouts, and who does a fused layer's work") {
  const std::string text = to_text(example());
  for (const char* part : {"plain > blocked 16", "jit", "50 %", "25 % of sgemm (200 GFLOP/s)",
                           "(with a layer beside it: forward)", "(inserted)", "reorders 0.500 ms",
                           "update 0.250 ms", "1333.3 images/s"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace speedo
