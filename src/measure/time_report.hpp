#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/core/net.hpp>

#include "measure/step_timer.hpp"

namespace speedo {

// What `speedo time` found: medians over the steps, milliseconds.
struct TimeReport {
  struct Layer {
    std::string name, type;
    std::string kernel;               // empty: none to name
    std::string layout, from_layout;  // of the first top and the first bottom
    Fused fused;                      // passes that the layer before does
    bool is_reorder = false;
    double forward_ms = 0.0, backward_ms = 0.0;
    double forward_flops = 0.0, backward_flops = 0.0;  // of a step; 0: not counted
  };
  std::string net, compute;
  bool trains = false;  // whether steps end with an update
  std::int64_t iterations = 0, images = 0;
  double sgemm_gflops = 0.0;
  double forward_ms = 0.0, backward_ms = 0.0, update_ms = 0.0, step_ms = 0.0, data_wait_ms = 0.0;
  std::int64_t peak_memory_bytes = 0;
  std::vector<Layer> layers;

  double images_per_second() const;
  double reorder_ms() const;
  double flops() const;  // of a step
  double gflops() const;
};

// `passes` of the net make a step. What compute, sgemm_gflops and peak_memory_bytes say is left to
// the caller.
TimeReport make_time_report(const Net& net, const std::vector<StepTime>& steps, int passes);

std::string to_json(const TimeReport& report);
std::string to_text(const TimeReport& report);

// The lines of `caffe time`, with averages.
void log_averages(const Net& net, const std::vector<StepTime>& steps);

}  // namespace speedo
