#pragma once

#include <map>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "formats/safetensors_file.hpp"

namespace speedo {

// What a file and a net have not in common.
struct ImportGaps {
  std::vector<std::string> missing;  // parameters of the net that the file has not
  std::vector<std::string> surplus;  // tensors of the file that are no parameters of the net
  // Tensors of layers that the net has not, and of which `missing` has the rest.
  std::vector<std::string> partial = {};
};

// Copies the tensors of a file into the net's parameters of the same names, by weight_name() or by
// number. A parameter that layers share is there if one of them has it. Errors: kMismatch, if a
// shape is another one, a parameter is there by two names, or layers that share one have different
// values for it; kData.
Result<ImportGaps> import_weights(const SafetensorsFile& file, Net& net);

// The shapes of layers' parameters, by layer; none of one without parameters.
using LayerShapes = std::map<std::string, std::vector<Shape>>;

// Of all layers but those that are computed in parts.
LayerShapes parameter_shapes(const Net& net);

// Takes what is left in `gaps` for layers that the net has not, such as those of another phase:
// where `shapes` has none for a layer, their number and shapes are the file's. Returns those that
// it has all parameters of. Errors: kMismatch, if a shape is another one or a parameter is there by
// two names; kData.
Result<std::vector<caffe::LayerParameter>> import_others(
    const SafetensorsFile& file, const std::vector<caffe::LayerParameter>& layers,
    const LayerShapes& shapes, ImportGaps& gaps);

// Whether the layers of `net` in a phase have the same values in `model` for each parameter that
// they share by name, those aside that are `missing`. Errors: kMismatch; kConfig, if the net's
// rules of what belongs to a phase are wrong.
Result<void> check_shared(const caffe::NetParameter& net, const caffe::NetState& state,
                          const caffe::NetParameter& model,
                          const std::vector<std::string>& missing);

}  // namespace speedo
