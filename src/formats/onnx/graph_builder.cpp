#include "formats/onnx/graph_builder.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/base/assert.hpp>

namespace speedo::onnx_export {

namespace {

using ::onnx::AttributeProto;
using ::onnx::TensorProto;

static_assert(std::endian::native == std::endian::little, "raw_data is as in memory");

void put(std::int64_t value, AttributeProto& attribute) {
  attribute.set_type(AttributeProto::INT);
  attribute.set_i(value);
}

void put(float value, AttributeProto& attribute) {
  attribute.set_type(AttributeProto::FLOAT);
  attribute.set_f(value);
}

void put(const Ints& values, AttributeProto& attribute) {
  attribute.set_type(AttributeProto::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
}

void put(const ::onnx::GraphProto& graph, AttributeProto& attribute) {
  attribute.set_type(AttributeProto::GRAPH);
  *attribute.mutable_g() = graph;
}

template <class T>
void put_data(std::span<const T> values, TensorProto& tensor) {
  tensor.set_raw_data(values.data(), values.size_bytes());
}

}  // namespace

void declare(const std::string& name, const Ints& dims, ::onnx::ValueInfoProto& info) {
  info.set_name(name);
  ::onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(TensorProto::FLOAT);
  type.mutable_shape();
  for (const std::int64_t dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

std::string GraphBuilder::free_name(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

void GraphBuilder::begin_layer(const std::string& name) {
  SPEEDO_ASSERT(outer_ == nullptr);
  layer_ = name;
  first_node_ = graph_->node_size();
}

void GraphBuilder::enter(::onnx::GraphProto& graph) {
  SPEEDO_ASSERT(outer_ == nullptr);
  outer_ = std::exchange(graph_, &graph);
}

void GraphBuilder::leave() {
  SPEEDO_ASSERT(outer_ != nullptr);
  graph_ = std::exchange(outer_, nullptr);
}

std::string GraphBuilder::add(NodeSpec node) { return add_several(std::move(node), 1).front(); }

Names GraphBuilder::add_several(NodeSpec node, int outputs) {
  ::onnx::NodeProto& target = *graph_->add_node();
  target.set_op_type(node.op);
  target.set_name(free_name(fmt::format("{}/{}", layer_, node.op)));
  for (std::string& input : node.inputs) target.add_input(std::move(input));
  for (const Attribute& attribute : node.attributes) {
    AttributeProto& made = *target.add_attribute();
    made.set_name(attribute.name);
    std::visit([&made](const auto& value) { put(value, made); }, attribute.value);
  }
  for (int i = 0; i < outputs; ++i) target.add_output(free_name(target.name() + ":value"));
  return {target.output().begin(), target.output().end()};
}

bool GraphBuilder::rename(const std::string& value, const std::string& name) {
  bool is_made_here = false;
  for (int i = first_node_; i < graph_->node_size(); ++i) {
    ::onnx::NodeProto& node = *graph_->mutable_node(i);
    for (std::string& output : *node.mutable_output()) {
      if (output != value) continue;
      output = name;
      is_made_here = true;
    }
    for (std::string& input : *node.mutable_input()) {
      if (is_made_here && input == value) input = name;
    }
  }
  return is_made_here;
}

TensorProto& GraphBuilder::add_initializer(const std::string& name, const Ints& dims,
                                           TensorProto::DataType type) {
  ::onnx::GraphProto& graph = outer_ != nullptr ? *outer_ : *graph_;
  TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  tensor.mutable_dims()->Add(dims.begin(), dims.end());
  return tensor;
}

std::string GraphBuilder::constant(float value) {
  return array(fmt::format("constant {}", value), {}, {&value, 1});
}

std::string GraphBuilder::constants(const Ints& values) {
  const std::string key = fmt::format("constants {}", fmt::join(values, " "));
  const auto known = arrays_.find(key);
  if (known != arrays_.end()) return known->second;
  const std::string name = free_name(key);
  const auto count = static_cast<std::int64_t>(values.size());
  put_data<std::int64_t>(values, add_initializer(name, {count}, TensorProto::INT64));
  return arrays_[key] = name;
}

std::string GraphBuilder::array(const std::string& key, const Ints& dims,
                                std::span<const float> values) {
  const auto known = arrays_.find(key);
  if (known != arrays_.end()) return known->second;
  return arrays_[key] = new_array(key, dims, values);
}

std::string GraphBuilder::new_array(const std::string& wanted, const Ints& dims,
                                    std::span<const float> values) {
  const std::string name = free_name(wanted);
  put_data<float>(values, add_initializer(name, dims, TensorProto::FLOAT));
  return name;
}

}  // namespace speedo::onnx_export
