#include "measure/step_timer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"

namespace speedo {

namespace {

double milliseconds(Instant duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double milliseconds_since(Instant start) { return milliseconds(steady_clock().now() - start); }

std::vector<std::string> names_of_layers(const Net& net) {
  std::vector<std::string> names;
  for (const Net::LayerView& view : net.layers()) names.push_back(view.layer->name());
  return names;
}

}  // namespace

StepTimer::StepTimer(Net& net, const Options& options)
    : net_(net), options_(options), names_(names_of_layers(net)) {}

Result<float> StepTimer::warm_up() {
  StepTime unused;
  SPEEDO_TRY(run(unused));
  return loss_;
}

Result<void> StepTimer::step() {
  StepTime time;
  SPEEDO_TRY(run(time));
  steps_.push_back(std::move(time));
  return {};
}

Result<void> StepTimer::run(StepTime& time) {
  const bool updates = options_.rule != nullptr;
  time.forward_ms.assign(net_.layers().size(), 0.0);
  time.backward_ms.assign(net_.layers().size(), 0.0);
  loss_ = 0.0F;
  if (!updates) clear();
  const Instant start = steady_clock().now();
  const Instant waited_before = waited();
  if (updates) clear();
  time.update_ms = milliseconds_since(start);
  for (int i = 0; i < options_.passes; ++i) SPEEDO_TRY(pass(time));
  const Instant update_start = steady_clock().now();
  if (updates) update();
  time.update_ms = updates ? time.update_ms + milliseconds_since(update_start) : 0.0;
  time.step_ms = milliseconds_since(start);
  time.data_wait_ms = milliseconds(waited() - waited_before);
  return {};
}

Result<void> StepTimer::pass(StepTime& time) {
  const std::size_t count = net_.layers().size();
  Backend& backend = net_.backend();
  const Instant forward_start = steady_clock().now();
  for (std::size_t i = 0; i < count; ++i) {
    const Instant start = steady_clock().now();
    SPEEDO_ASSIGN(const float loss, net_.forward_layer(i));
    if (i == 0 && names_of_layers(net_) != names_) {
      return Error{ErrorCode::kUnsupported,
                   "images of other sizes are computed by other layers: give all one size "
                   "(crop_size, or new_height and new_width) to time each layer"};
    }
    backend.device().synchronize();
    time.forward_ms[i] += milliseconds_since(start);
    loss_ += loss / static_cast<float>(options_.passes);
  }
  time.forward_total_ms += milliseconds_since(forward_start);
  const Instant backward_start = steady_clock().now();
  for (std::size_t i = count; i-- > 0;) {
    const Instant start = steady_clock().now();
    net_.backward_layer(i);
    backend.device().synchronize();
    time.backward_ms[i] += milliseconds_since(start);
  }
  time.backward_total_ms += milliseconds_since(backward_start);
  return {};
}

void StepTimer::clear() {
  net_.clear_gradients();
  net_.backend().device().synchronize();
}

void StepTimer::update() {
  if (!net_.has_finite_gradients()) SPEEDO_WARN("a gradient is not finite");
  options_.rule->update(iteration_++, net_.weights().data(), net_.gradients().data());
  net_.backend().device().synchronize();
}

Instant StepTimer::waited() const {
  return options_.feeds != nullptr ? options_.feeds->totals().waited : Instant{0};
}

double undisturbed(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto tenth = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10);
  std::nth_element(values.begin(), tenth, values.end());
  return *tenth;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2.0;
}

}  // namespace speedo
