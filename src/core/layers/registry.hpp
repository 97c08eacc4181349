#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/layer.hpp>
#include <speedo/core/layer_expansion.hpp>

namespace speedo {

// Whether there is such a type. Errors: kConfig for one that does not exist, naming the known ones;
// kUnsupported for Python, which runs code of its own.
Result<void> check_layer_type(const caffe::LayerParameter& parameter);

// The layer that the message's type names. Errors: check_layer_type()'s.
// Requires: a type that is not expanded.
Result<std::unique_ptr<Layer>> make_layer(const caffe::LayerParameter& parameter);

// What writes the graph of a type that stands for several layers; null: the type is no such one.
const ExpandLayer* registered_expansion(std::string_view type);

// The types that can be in a net, in alphabetical order.
std::vector<std::string_view> layer_types();

}  // namespace speedo
