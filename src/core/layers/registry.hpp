#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// The layer that the message's type names. Errors: kConfig for a type that does not exist, naming
// the known ones; kUnsupported for one of Caffe's types that is not built yet.
Result<std::unique_ptr<Layer>> make_layer(const caffe::LayerParameter& parameter);

// The types that make_layer() can make, in alphabetical order.
std::vector<std::string_view> layer_types();

}  // namespace speedo
