#include "nets/computed.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "support/reached_by_backward.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo::nets {
namespace {

constexpr float kJitter = 1e-6F;
constexpr std::uint64_t kPasses = 2;

// A net without in-place layers, and which of its blobs hold the first and the last values of one
// that in-place layers wrote over.
struct Unfolded {
  caffe::NetParameter net;
  std::map<std::string, std::string> first, last;
};

Unfolded unfold(const caffe::NetParameter& net) {
  Unfolded result{net, {}, {}};
  for (caffe::LayerParameter& layer : *result.net.mutable_layer()) {
    for (std::string& bottom : *layer.mutable_bottom()) bottom = result.last.at(bottom);
    for (std::string& top : *layer.mutable_top()) {
      const std::string name = top;
      if (result.last.contains(name)) top += "@" + layer.name();
      result.first.try_emplace(name, top);
      result.last[name] = top;
    }
  }
  return result;
}

Random stream(const Data& data, std::uint64_t kind, std::uint64_t pass, std::size_t index) {
  return Random::derive(data.seed, {kind, pass, static_cast<std::uint64_t>(index)});
}

void move_slightly(std::vector<float>& values, const Data& data, Random& random) {
  if (data.jitter == 0) return;
  Random noise = Random::derive(random.next(), {static_cast<std::uint64_t>(data.jitter)});
  for (float& value : values) value *= 1.0F + kJitter * noise.uniform(-1.0F, 1.0F);
}

std::vector<float> draw_values(std::int64_t count, float low, float high, const Data& data,
                               Random random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random.uniform(low, high);
  move_slightly(values, data, random);
  return values;
}

// Away from 0, so that no factor makes a channel nearly constant.
std::vector<float> draw_factors(std::int64_t count, const Data& data, Random random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = random.uniform(0.25F, 1.5F);
    if (random.below(2) == 0) value = -value;
  }
  move_slightly(values, data, random);
  return values;
}

// How many inputs one output sums: all axes but that of the outputs, which is the last one of a
// transposed InnerProduct's weights and else the first.
std::int64_t fan_in(const caffe::NetParameter& net, const ParameterSlot& slot) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.name() != slot.layer) continue;
    if (layer.inner_product_param().transpose()) return slot.shape[0];
  }
  return slot.count() / slot.shape[0];
}

// Weights that keep values near 1; factors, biases and slopes of one axis; statistics as they are.
void set_parameters(Net& net, const caffe::NetParameter& message, const Data& data) {
  const auto slots = net.layout().slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const ParameterSlot& slot = slots[i];
    const Random random = stream(data, 1, 0, i);
    std::vector<float> values;
    if (slot.is_statistic) {
      values = draw_values(slot.count(), 0.5F, 1.5F, data, random);
    } else if (slot.shape.axes() < 2) {
      values = draw_factors(slot.count(), data, random);
    } else {
      const float reach = std::sqrt(3.0F / static_cast<float>(fan_in(message, slot)));
      values = draw_values(slot.count(), -reach, reach, data, random);
    }
    net.backend().device().upload(net.weights().data() + slot.offset, values);
  }
}

// The number of classes, where the blob holds labels; else 0.
std::int64_t classes_of(const Net& net, const std::string& blob) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "SoftmaxWithLoss" || view.bottom_names[1] != blob) continue;
    return view.bottoms[0]->shape()[1];
  }
  return 0;
}

void set_inputs(Net& net, const Data& data, std::uint64_t pass) {
  std::size_t index = 0;
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "Input") continue;
    Random random = stream(data, 2, pass, index++);
    Tensor& top = *view.tops[0];
    std::vector<float> values;
    if (const std::int64_t classes = classes_of(net, view.top_names[0]); classes > 0) {
      while (static_cast<std::int64_t>(values.size()) < top.count()) {
        values.push_back(static_cast<float>(random.below(static_cast<std::uint64_t>(classes))));
      }
    } else {
      values = draw_values(top.count(), -1.0F, 1.0F, data, random);
    }
    top.set_values(net.backend(), values);
  }
}

struct Run {
  std::unique_ptr<Net> net;
  std::vector<float> losses;
  std::vector<Summed> summed;  // by slot; of nets that keep their blobs
};

std::string parameter_gradient(const ParameterSlot& slot) {
  return fmt::format("gradient of parameter {}/{}", slot.layer, slot.index);
}

// Values of a layer's top that one value of a parameter's gradient is the sum over: weights have
// the outputs as an axis, a bias or a factor takes a share of the top.
std::int64_t summands(const ParameterSlot& slot, std::int64_t top_count) {
  return top_count / (slot.shape.axes() < 2 ? slot.count() : slot.shape[0]);
}

// What the backward pass added to Run::summed.
void add_summed(const Net& net, std::vector<Summed>& summed) {
  const auto slots = net.layout().slots();
  summed.resize(slots.size());
  const std::set<std::string> reached = test::reached_by_backward(net);
  for (const Net::LayerView& view : net.layers()) {
    if (view.slots.empty() || !reached.contains(view.top_names[0])) continue;
    const std::vector<float> flow = view.tops[0]->gradients(net.backend());
    float largest = 0.0F;
    for (const float gradient : flow) largest = std::max(largest, std::fabs(gradient));
    for (const std::size_t slot : view.slots) {
      const auto terms = static_cast<double>(
          summands(slots[slot], static_cast<std::int64_t>(flow.size())));
      summed[slot].magnitudes += terms * double{largest};
      summed[slot].terms += terms;
    }
  }
}

Result<Run> run(const caffe::NetParameter& message, NetOptions options, const Data& data) {
  const bool is_test = message.has_state() && message.state().phase() == caffe::TEST;
  options.phase = is_test ? Phase::kTest : Phase::kTrain;
  Run done;
  SPEEDO_ASSIGN(done.net, Net::create(message, options));
  Net& net = *done.net;
  set_parameters(net, message, data);
  net.clear_gradients();
  for (std::uint64_t pass = 0; pass < kPasses; ++pass) {
    set_inputs(net, data, pass);
    SPEEDO_ASSIGN(const float loss, net.forward());
    done.losses.push_back(loss);
    if (!options.trains) continue;
    net.backward();
    if (options.keep_blobs) add_summed(net, done.summed);
  }
  return done;
}

Arrays parameters_of(Run& done, bool with_gradients) {
  Arrays arrays{{"loss", done.losses}};
  Net& net = *done.net;
  for (const ParameterSlot& slot : net.layout().slots()) {
    if (!slot.is_statistic && !with_gradients) continue;
    const Arena& arena = slot.is_statistic ? net.weights() : net.gradients();
    std::vector<float> values(static_cast<std::size_t>(slot.count()));
    net.backend().device().download(values, arena.data() + slot.offset);
    arrays[slot.is_statistic ? fmt::format("statistic {}/{}", slot.layer, slot.index)
                             : parameter_gradient(slot)] = std::move(values);
  }
  return arrays;
}

}  // namespace

Result<Arrays> compute(const caffe::NetParameter& message, Backend& backend, Purpose purpose,
                       const Data& data) {
  NetOptions options;
  options.backend = &backend;
  options.keep_blobs = purpose == Purpose::kLook;
  options.trains = purpose != Purpose::kTest;
  SPEEDO_ASSIGN(Run done, run(message, options, data));
  const Net& net = *done.net;
  Arrays arrays = parameters_of(done, options.trains);
  const std::set<std::string> reached = test::reached_by_backward(net);
  const auto& outputs = net.output_names();
  const std::set<std::string> output_set(outputs.begin(), outputs.end());
  for (const caffe::LayerParameter& layer : message.layer()) {
    for (const std::string& top : layer.top()) {
      const Tensor& blob = *net.blob(top);
      const bool is_input = layer.type() == "Input";
      if (options.keep_blobs || is_input || output_set.contains(top)) {
        arrays["values of " + top] = blob.values(backend);
      }
      // As in Caffe, it is also that of the bottom, which an in-place layer there writes over.
      if (!options.trains || layer.type() == "Flatten") continue;
      if ((options.keep_blobs || is_input) && reached.contains(top)) {
        arrays["gradient of " + top] = blob.gradients(backend);
      }
    }
  }
  return arrays;
}

Result<Expected> compute_reference(const caffe::NetParameter& message, const Data& data) {
  const auto rounding = static_cast<std::uint64_t>(data.jitter);
  const auto backend = make_reference_backend(LayoutKind::kPlain, nullptr, rounding);
  const Unfolded unfolded = unfold(message);
  NetOptions options;
  options.backend = backend.get();
  options.keep_blobs = true;
  options.may_fuse = false;
  SPEEDO_ASSIGN(Run done, run(unfolded.net, options, data));
  Expected expected{parameters_of(done, true), {}};
  const auto slots = done.net->layout().slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    expected.summed[parameter_gradient(slots[i])] = done.summed[i];
  }
  Arrays& arrays = expected.arrays;
  const std::set<std::string> reached = test::reached_by_backward(*done.net);
  for (const auto& [name, last] : unfolded.last) {
    arrays["values of " + name] = done.net->blob(last)->values(*backend);
    const std::string& first = unfolded.first.at(name);
    if (!reached.contains(first)) continue;
    arrays["gradient of " + name] = done.net->blob(first)->gradients(*backend);
  }
  return expected;
}

}  // namespace speedo::nets
