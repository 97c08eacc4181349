// Layers that work element by element, Dropout (which does nothing in tests) and Eltwise.

#include <cmath>
#include <cstdint>
#include <optional>

#include <speedo/backend/unary_op.hpp>
#include <speedo/base/assert.hpp>

#include "formats/onnx/layer_writer.hpp"

namespace speedo::onnx_export {

namespace {

// (a x + b)^c, the constant that it is where a or c is 0.
std::string power_of(LayerWriter& layer, const UnaryOp& op) {
  const std::string& x = layer.bottom(0);
  if (op.a * op.c == 0.0F) {
    const float value = op.c == 0.0F ? 1.0F : std::pow(op.b, op.c);
    return layer.add("Expand", {layer.constant(value), layer.constants(layer.top_shape(0).dims())});
  }
  const std::string base = layer.plus(layer.times(x, op.a), op.b);
  return op.c == 1.0F ? base : layer.add("Pow", {base, layer.constant(op.c)});
}

// x > a ? 1 : 0, as a float.
std::string threshold_of(LayerWriter& layer, const UnaryOp& op) {
  const std::string is_above = layer.add("Greater", {layer.bottom(0), layer.constant(op.a)});
  return layer.add("Cast", {is_above}, {{"to", std::int64_t{::onnx::TensorProto::FLOAT}}});
}

std::string value_of(LayerWriter& layer, const UnaryOp& op) {
  const std::string& x = layer.bottom(0);
  switch (op.kind) {
    case UnaryKind::kAbs:
      return layer.add("Abs", {x});
    case UnaryKind::kBnll:
      return layer.add("Softplus", {x});
    case UnaryKind::kClip:
      return layer.add("Clip", {x, layer.constant(op.a), layer.constant(op.b)});
    case UnaryKind::kElu:
      return layer.add("Elu", {x}, {{"alpha", op.a}});
    case UnaryKind::kExp:
      return layer.times(layer.add("Exp", {layer.times(x, op.a)}), op.b);
    case UnaryKind::kLog:
      return layer.times(layer.add("Log", {layer.plus(layer.times(x, op.a), op.b)}), op.c);
    case UnaryKind::kPower:
      return power_of(layer, op);
    case UnaryKind::kRelu:
      if (op.a == 0.0F) return layer.add("Relu", {x});
      return layer.add("LeakyRelu", {x}, {{"alpha", op.a}});
    case UnaryKind::kSigmoid:
      return layer.add("Sigmoid", {x});
    case UnaryKind::kSwish:
      return layer.add("Mul", {x, layer.add("Sigmoid", {layer.times(x, op.a)})});
    case UnaryKind::kTanh:
      return layer.add("Tanh", {x});
    case UnaryKind::kThreshold:
      break;
  }
  return threshold_of(layer, op);
}

Result<void> write_element(LayerWriter& layer) {
  const std::optional<UnaryOp> op = layer.activation();
  SPEEDO_ASSERT(op.has_value());
  // A value that is its bottom, where nothing changes, gets a name of its own.
  const std::string value = value_of(layer, *op);
  layer.set_top(0, value == layer.bottom(0) ? layer.add("Identity", {value}) : value);
  return {};
}

Result<void> write_dropout(LayerWriter& layer) {
  layer.set_top(0, layer.add("Identity", {layer.bottom(0)}));
  return {};
}

// A slope of each channel lies on the second of the bottom's axes.
Result<void> write_prelu(LayerWriter& layer) {
  Ints dims(static_cast<std::size_t>(layer.bottom_shape(0).axes() - 1), 1);
  dims.front() = layer.weight_shape(0).count();
  layer.set_top(0, layer.add("PRelu", {layer.bottom(0), layer.weight(0, dims)}));
  return {};
}

std::string weighted_sum(LayerWriter& layer, const caffe::EltwiseParameter& options) {
  Names terms;
  for (int i = 0; i < layer.bottom_count(); ++i) {
    const float factor = i < options.coeff_size() ? options.coeff(i) : 1.0F;
    terms.push_back(layer.times(layer.bottom(i), factor));
  }
  return layer.add("Sum", terms);
}

Result<void> write_eltwise(LayerWriter& layer) {
  const caffe::EltwiseParameter& options = layer.message().eltwise_param();
  std::string value = layer.bottom(0);
  switch (options.operation()) {
    case caffe::EltwiseParameter::SUM:
      value = weighted_sum(layer, options);
      break;
    case caffe::EltwiseParameter::MAX:
      value = layer.add("Max", layer.bottoms());
      break;
    case caffe::EltwiseParameter::PROD:
      for (int i = 1; i < layer.bottom_count(); ++i) {
        value = layer.add("Mul", {value, layer.bottom(i)});
      }
      break;
  }
  layer.set_top(0, value);
  return {};
}

}  // namespace

const LayerTable& element_layers() {
  static const LayerTable all = [] {
    LayerTable table{
        {"Dropout", write_dropout}, {"Eltwise", write_eltwise}, {"PReLU", write_prelu}};
    for (const char* type : {"AbsVal", "BNLL", "Clip", "ELU", "Exp", "Log", "Power", "ReLU",
                             "Sigmoid", "Swish", "TanH", "Threshold"}) {
      table[type] = write_element;
    }
    return table;
  }();
  return all;
}

}  // namespace speedo::onnx_export
