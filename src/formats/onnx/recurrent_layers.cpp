// LSTM, RNN and LSTMUnit. The steps are a Scan, whose body is one step: ONNX' own LSTM cannot begin
// a sequence anew at any step, as `cont` tells.
//
// Without expose_hidden Caffe's first step goes on from where the pass before ended. A graph keeps
// nothing, so here it begins with zeros, as in a net's first pass.

#include <cstdint>
#include <utility>
#include <vector>

#include "formats/onnx/layer_writer.hpp"

namespace speedo::onnx_export {

namespace {

// The extents of a recurrent layer, and where its parameters are.
struct Sizes {
  std::int64_t steps, streams, cells, width;
  bool has_static, exposes;
  int states;

  int hidden_weights() const { return has_static ? 3 : 2; }
  int first_exposed() const { return has_static ? 3 : 2; }
};

Sizes sizes_of(const LayerWriter& layer, int states, int sums_per_cell) {
  const caffe::RecurrentParameter& options = layer.message().recurrent_param();
  const Shape& x = layer.bottom_shape(0);
  const auto cells = static_cast<std::int64_t>(options.num_output());
  const bool exposes = options.expose_hidden();
  const bool has_static = layer.bottom_count() > (exposes ? 2 + states : 2);
  return {x[0], x[1], cells, sums_per_cell * cells, has_static, exposes, states};
}

std::string product(LayerWriter& layer, const std::string& x, int weight, const std::string& term) {
  Names inputs{x, layer.weight(weight)};
  if (!term.empty()) inputs.push_back(term);
  return layer.add("Gemm", inputs, {{"transB", std::int64_t{1}}});
}

// What the bottoms add to the sums of each step: steps x streams x width.
std::string input_sums(LayerWriter& layer, const Sizes& sizes) {
  const Shape& x = layer.bottom_shape(0);
  const std::string rows = layer.reshape(layer.bottom(0), {x.count(0, 2), x.count(2)});
  const std::string bias = layer.weight(1);
  const std::string sums = layer.reshape(product(layer, rows, 0, sizes.has_static ? "" : bias),
                                         {sizes.steps, sizes.streams, sizes.width});
  if (!sizes.has_static) return sums;
  const Shape& constant = layer.bottom_shape(2);
  const std::string all = layer.reshape(layer.bottom(2), {constant.count(0, 1), constant.count(1)});
  return layer.add("Add", {sums, product(layer, all, 2, bias)});
}

std::string first_state(LayerWriter& layer, const Sizes& sizes, int state) {
  const Ints dims{sizes.streams, sizes.cells};
  if (sizes.exposes) return layer.reshape(layer.bottom(sizes.first_exposed() + state), dims);
  return layer.array("first state", dims,
                     std::vector<float>(static_cast<std::size_t>(sizes.streams * sizes.cells)));
}

struct LstmStep {
  std::string c, h;
};

// i, f, o = sigmoid(sums), g = tanh(sums), c = cont f c_before + i g, h = o tanh(c). The gates lie
// one after another along `axis`.
LstmStep lstm_step(LayerWriter& layer, const std::string& sums, const std::string& cont,
                   const std::string& c_before, std::int64_t axis) {
  const Names gates = layer.graph().add_several({"Split", {sums}, {{"axis", axis}}}, 4);
  const std::string i = layer.add("Sigmoid", {gates[0]});
  const std::string f = layer.add("Mul", {layer.add("Sigmoid", {gates[1]}), cont});
  const std::string o = layer.add("Sigmoid", {gates[2]});
  const std::string g = layer.add("Tanh", {gates[3]});
  const std::string c =
      layer.add("Add", {layer.add("Mul", {f, c_before}), layer.add("Mul", {i, g})});
  return {c, layer.add("Mul", {o, layer.add("Tanh", {c})})};
}

std::string declare_input(LayerWriter& layer, ::onnx::GraphProto& body, const char* what,
                          const Ints& dims) {
  const std::string name = layer.graph().free_name(layer.message().name() + "/" + what);
  declare(name, dims, *body.add_input());
  return name;
}

// One step: states, sums and cont in; states and the hidden values, once more, out.
::onnx::GraphProto step_of(LayerWriter& layer, const Sizes& sizes) {
  ::onnx::GraphProto body;
  body.set_name(layer.message().name() + "/step");
  const Ints dims{sizes.streams, sizes.cells};
  const bool is_lstm = sizes.states == 2;
  const std::string h_before = declare_input(layer, body, "h_before", dims);
  std::string c_before;
  if (is_lstm) c_before = declare_input(layer, body, "c_before", dims);
  const std::string terms = declare_input(layer, body, "terms", {sizes.streams, sizes.width});
  const std::string cont = declare_input(layer, body, "cont", {sizes.streams, 1});
  layer.graph().enter(body);
  const std::string conted = layer.add("Mul", {h_before, cont});
  const std::string sums = product(layer, conted, sizes.hidden_weights(), terms);
  Names outputs;
  if (is_lstm) {
    const LstmStep step = lstm_step(layer, sums, cont, c_before, 1);
    outputs = {step.h, step.c, layer.add("Identity", {step.h})};
  } else {
    const std::string h = layer.add("Tanh", {sums});
    outputs = {h, layer.add("Identity", {h})};
  }
  layer.graph().leave();
  for (const std::string& output : outputs) declare(output, dims, *body.add_output());
  return body;
}

// The states after the last step, then the hidden values of all steps.
Names scan(LayerWriter& layer, const Sizes& sizes) {
  Names inputs;
  for (int i = 0; i < sizes.states; ++i) inputs.push_back(first_state(layer, sizes, i));
  inputs.push_back(input_sums(layer, sizes));
  inputs.push_back(layer.reshape(layer.bottom(1), {sizes.steps, sizes.streams, 1}));
  return layer.graph().add_several(
      {"Scan",
       std::move(inputs),
       {{"body", step_of(layer, sizes)}, {"num_scan_inputs", std::int64_t{2}}}},
      sizes.states + 1);
}

void set_states(LayerWriter& layer, const Sizes& sizes, const Names& values) {
  for (int i = 0; i < sizes.states && sizes.exposes; ++i) {
    layer.set_top(
        i + 1, layer.reshape(values[static_cast<std::size_t>(i)], layer.top_shape(i + 1).dims()));
  }
}

Result<void> write_lstm(LayerWriter& layer) {
  const Sizes sizes = sizes_of(layer, 2, 4);
  const Names values = scan(layer, sizes);
  layer.set_top(0, values.back());
  set_states(layer, sizes, values);
  return {};
}

Result<void> write_rnn(LayerWriter& layer) {
  const Sizes sizes = sizes_of(layer, 1, 1);
  const Names values = scan(layer, sizes);
  const int weights = sizes.hidden_weights() + 1;
  const std::string rows = layer.reshape(values.back(), {sizes.steps * sizes.streams, sizes.cells});
  const std::string sums = product(layer, rows, weights, layer.weight(weights + 1));
  layer.set_top(0, layer.reshape(layer.add("Tanh", {sums}), layer.top_shape(0).dims()));
  set_states(layer, sizes, values);
  return {};
}

Result<void> write_lstm_unit(LayerWriter& layer) {
  const Shape& cont = layer.bottom_shape(2);
  const std::string column = layer.reshape(layer.bottom(2), {1, cont.count(), 1});
  const LstmStep step = lstm_step(layer, layer.bottom(1), column, layer.bottom(0), 2);
  layer.set_top(0, step.c);
  layer.set_top(1, step.h);
  return {};
}

}  // namespace

const LayerTable& recurrent_layers() {
  static const LayerTable all = {
      {"LSTM", write_lstm}, {"LSTMUnit", write_lstm_unit}, {"RNN", write_rnn}};
  return all;
}

}  // namespace speedo::onnx_export
