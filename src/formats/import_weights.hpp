#pragma once

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
};

// Copies the tensors of a file into the net's parameters of the same names, by weight_name() or by
// number. A parameter that layers share is there if one of them has it. Errors: kMismatch, if a
// shape is another one, a parameter is there by two names, or layers that share one have different
// values for it; kData.
Result<ImportGaps> import_weights(const SafetensorsFile& file, Net& net);

// Takes what is left in `gaps` for layers that the net has not, such as those of another phase:
// their shapes are the file's. Returns those that it has all parameters of. Errors: kMismatch,
// kData.
Result<std::vector<caffe::LayerParameter>> import_others(
    const SafetensorsFile& file, const std::vector<caffe::LayerParameter>& layers,
    ImportGaps& gaps);

}  // namespace speedo
