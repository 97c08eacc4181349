#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "formats/onnx/graph_builder.hpp"

namespace speedo::onnx_export {

// One layer of a net as nodes of an ONNX graph: what the functions that write layers work with.
// Values are known by their names in the graph.
class LayerWriter {
 public:
  LayerWriter(const Net& net, const Net::LayerView& view, Names bottoms, GraphBuilder& graph);

  const caffe::LayerParameter& message() const { return view_.layer->parameter_message(); }
  // The function that an element-wise layer applies.
  std::optional<UnaryOp> activation() const { return view_.layer->activation(); }
  int bottom_count() const { return static_cast<int>(bottoms_.size()); }
  int top_count() const { return static_cast<int>(view_.tops.size()); }
  int weight_count() const { return static_cast<int>(view_.slots.size()); }
  const std::string& bottom(int index) const { return bottoms_[static_cast<std::size_t>(index)]; }
  const Names& bottoms() const { return bottoms_; }
  const Shape& bottom_shape(int index) const;
  const Shape& top_shape(int index) const;

  // A parameter of the layer; of other dims than its own if some are given. Layers that share one
  // share the array.
  std::string weight(int index, const Ints& dims = {});
  const Shape& weight_shape(int index) const;
  std::vector<float> weight_values(int index) const;
  // An array of the layer's own, there once for each `name`. Others may have the layer's name.
  std::string array(const std::string& name, const Ints& dims, std::span<const float> values);

  std::string add(const char* op, Names inputs, Attributes attributes = {}) {
    return graph_.add({op, std::move(inputs), std::move(attributes)});
  }
  GraphBuilder& graph() { return graph_; }
  std::string constant(float value) { return graph_.constant(value); }
  std::string constants(const Ints& values) { return graph_.constants(values); }
  // x * factor, x + term: x itself where that changes nothing.
  std::string times(const std::string& x, float factor);
  std::string plus(const std::string& x, float term);
  std::string reshape(const std::string& x, const Ints& dims);

  // The value that a top is. All tops get one.
  void set_top(int index, std::string value) {
    tops_[static_cast<std::size_t>(index)] = std::move(value);
  }
  const Names& tops() const { return tops_; }

  // kUnsupported, naming the layer.
  Error unsupported(const std::string& why) const;

 private:
  const Net& net_;
  const Net::LayerView& view_;
  Names bottoms_, tops_;
  std::map<std::string, std::string> arrays_;  // the layer's own, by name
  GraphBuilder& graph_;
};

// Writes a layer's nodes and sets all its tops. Error: kUnsupported, for what ONNX cannot say.
using WriteLayer = Result<void> (*)(LayerWriter& layer);
using LayerTable = std::map<std::string_view, WriteLayer>;

// The layers that can be written, by type.
const LayerTable& window_layers();     // that look through windows
const LayerTable& norm_layers();       // that normalize, scale and shift
const LayerTable& element_layers();    // that work element by element
const LayerTable& shape_layers();      // that move elements
const LayerTable& sum_layers();        // products with weights, sums, largest values
const LayerTable& recurrent_layers();  // that go over time steps

}  // namespace speedo::onnx_export
