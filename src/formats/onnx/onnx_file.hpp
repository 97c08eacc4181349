#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

#include "onnx.pb.h"

namespace speedo {

struct OnnxOptions {
  std::map<std::string, std::string> metadata = {};
  std::vector<std::string> outputs = {};  // blobs; none: those that no layer reads
};

// A net with its weights as an ONNX model of opset 17: Input layers are the graph's inputs, all
// values have the shapes that the blobs have now. Values have the names of
// their blobs; of one that layers change in place, the first has it if it is an input, else the
// last, and the others have the layer's name behind it. Errors: kUnsupported, naming the layer and
// the reason, for what ONNX cannot say; kConfig, for blobs without elements.
//
// Requires: the net has the blobs of `outputs`.
Result<onnx::ModelProto> to_onnx(const Net& net, const OnnxOptions& options);

// The same as a file. Error: kCannotWrite too; of models of 2 GiB or more.
Result<void> write_onnx(const std::filesystem::path& path, const Net& net,
                        const OnnxOptions& options);

}  // namespace speedo
