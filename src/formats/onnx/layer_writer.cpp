#include "formats/onnx/layer_writer.hpp"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/weight_names.hpp"

namespace speedo::onnx_export {

namespace {

// As weight files call a parameter, by the layer that owns it.
std::string name_of(const Net& net, const ParameterSlot& slot) {
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->name() != slot.layer || view.slots.empty()) continue;
    return weight_name(view.layer->parameter_message(), slot.index,
                       static_cast<int>(view.slots.size()));
  }
  return numbered_weight_name(slot.layer, slot.index);
}

}  // namespace

LayerWriter::LayerWriter(const Net& net, const Net::LayerView& view, Names bottoms,
                         GraphBuilder& graph)
    : net_(net),
      view_(view),
      bottoms_(std::move(bottoms)),
      tops_(view.tops.size()),
      graph_(graph) {}

const Shape& LayerWriter::bottom_shape(int index) const {
  return view_.bottoms[static_cast<std::size_t>(index)]->shape();
}

const Shape& LayerWriter::top_shape(int index) const {
  return view_.tops[static_cast<std::size_t>(index)]->shape();
}

const Shape& LayerWriter::weight_shape(int index) const {
  return view_.layer->parameters()[static_cast<std::size_t>(index)]->shape();
}

std::vector<float> LayerWriter::weight_values(int index) const {
  const Tensor& parameter = *view_.layer->parameters()[static_cast<std::size_t>(index)];
  return parameter.values(net_.backend());
}

std::string LayerWriter::weight(int index, const Ints& dims) {
  const Ints& wanted = dims.empty() ? weight_shape(index).dims() : dims;
  const std::size_t slot = view_.slots[static_cast<std::size_t>(index)];
  const ParameterSlot& owned = net_.layout().slots()[slot];
  std::string key = name_of(net_, owned);
  if (wanted != owned.shape.dims()) key += fmt::format(" {}", fmt::join(wanted, " "));
  if (graph_.has_array(key)) return graph_.array(key, wanted, {});
  return graph_.array(key, wanted, weight_values(index));
}

std::string LayerWriter::array(const std::string& name, const Ints& dims,
                               std::span<const float> values) {
  const auto known = arrays_.find(name);
  if (known != arrays_.end()) return known->second;
  return arrays_[name] = graph_.new_array(message().name() + "/" + name, dims, values);
}

std::string LayerWriter::times(const std::string& x, float factor) {
  return factor == 1.0F ? x : add("Mul", {x, constant(factor)});
}

std::string LayerWriter::plus(const std::string& x, float term) {
  return term == 0.0F ? x : add("Add", {x, constant(term)});
}

std::string LayerWriter::reshape(const std::string& x, const Ints& dims) {
  return add("Reshape", {x, constants(dims)});
}

Error LayerWriter::unsupported(const std::string& why) const {
  return {ErrorCode::kUnsupported, fmt::format("layer '{}' ({}): cannot be written as ONNX: {}",
                                               message().name(), message().type(), why)};
}

}  // namespace speedo::onnx_export
