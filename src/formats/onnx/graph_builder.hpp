#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <speedo/core/shape.hpp>

#include "onnx.pb.h"

namespace speedo::onnx_export {

using Names = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

struct Attribute {
  const char* name;
  std::variant<std::int64_t, float, Ints, ::onnx::GraphProto> value;
};
using Attributes = std::vector<Attribute>;

// A node to be.
struct NodeSpec {
  const char* op;
  Names inputs;
  Attributes attributes = {};
};

// A float array's or an integer array's type, as graphs declare it.
void declare(const std::string& name, const Ints& dims, ::onnx::ValueInfoProto& info);

// Puts nodes and constants into an ONNX graph, and gives them names that are there once.
class GraphBuilder {
 public:
  explicit GraphBuilder(::onnx::GraphProto& graph) : graph_(&graph) {}

  // Values of these names are others': no name that is made here is one of them.
  void reserve(const std::string& name) { taken_.insert(name); }
  // `wanted`, or something like it that is free; taken from then on.
  std::string free_name(const std::string& wanted);

  // What follows belongs to a layer of this name.
  void begin_layer(const std::string& name);
  // What follows goes into another graph, of the same names, until leave().
  void enter(::onnx::GraphProto& graph);
  void leave();

  // Adds a node; returns the names of its values.
  std::string add(NodeSpec node);
  Names add_several(NodeSpec node, int outputs);
  // Gives a value that a node of this layer makes another name. False: no node of it does.
  bool rename(const std::string& value, const std::string& name);

  // Constants; equal ones are one.
  std::string constant(float value);
  std::string constants(const Ints& values);
  // An array of floats, there once for each `key`, under a name like it.
  std::string array(const std::string& key, const Ints& dims, std::span<const float> values);
  // One that nobody else asks for, under a name like `wanted`.
  std::string new_array(const std::string& wanted, const Ints& dims, std::span<const float> values);
  bool has_array(const std::string& key) const { return arrays_.count(key) != 0; }

 private:
  ::onnx::TensorProto& add_initializer(const std::string& name, const Ints& dims,
                                       ::onnx::TensorProto::DataType type);

  ::onnx::GraphProto* graph_;
  ::onnx::GraphProto* outer_ = nullptr;  // while graph_ is one that was entered
  std::set<std::string> taken_;
  std::map<std::string, std::string> arrays_;  // names by key
  std::string layer_;
  int first_node_ = 0;  // of the layer
};

}  // namespace speedo::onnx_export
