#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/core/net.hpp>
#include <speedo/core/update_rule.hpp>

namespace speedo {

// Milliseconds of one step: passes over a net and, in training, the update.
struct StepTime {
  std::vector<double> forward_ms, backward_ms;  // per layer of Net::layers()
  double forward_total_ms = 0.0, backward_total_ms = 0.0;
  double update_ms = 0.0;     // clearing the gradients, the solver's rule, the weights
  double data_wait_ms = 0.0;  // within forward: data that were not ready yet
  double step_ms = 0.0;       // all of it, by the clock
};

// Runs steps and measures each layer on its own.
class StepTimer {
 public:
  struct Options {
    const FeedFactory* feeds = nullptr;  // the net's; null: data are not waited for
    UpdateRule* rule = nullptr;          // null: no update, and no part of the step is clearing
    int passes = 1;                      // of forward and backward before an update
  };
  // Requires: the net and what the options name outlive the timer.
  StepTimer(Net& net, const Options& options);

  // A step that is not measured: memory is touched, operations make what they keep. Returns the
  // loss.
  Result<float> warm_up();
  // Error, beside the net's: kUnsupported, if batches of several shapes have other layers.
  Result<void> step();

  const std::vector<StepTime>& steps() const { return steps_; }

 private:
  Result<void> run(StepTime& time);
  Result<void> pass(StepTime& time);
  void clear();
  void update();
  Instant waited() const;

  Net& net_;
  Options options_;
  const std::vector<std::string> names_;  // of the layers that times are told of
  std::vector<StepTime> steps_;
  std::int64_t iteration_ = 0;
  float loss_ = 0.0F;
};

double median(std::vector<double> values);  // 0 of none
// The longest of the shortest tenth: other programs only ever lengthen a time, and these least. 0
// of none.
double undisturbed(std::vector<double> values);

// The median of one figure over steps.
template <class Figure>
double median_of(const std::vector<StepTime>& steps, const Figure& figure) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepTime& step : steps) values.push_back(figure(step));
  return median(std::move(values));
}

}  // namespace speedo
