#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

#include "caffe.pb.h"

namespace speedo {

struct DeployOptions {
  caffe::NetState state = {};                // level and stages; the phase is TEST
  std::vector<std::string> outputs = {};     // blobs that are wanted; none: see deploy_net()
  std::map<std::string, Shape> shapes = {};  // of inputs, by blob
};

// What is left of a training net for those who only ask it: the layers of the TEST phase, with
// Input layers in the place of data layers, probabilities in the place of losses that compute them
// (SoftmaxWithLoss and InfogainLoss: Softmax, SigmoidCrossEntropyLoss: Sigmoid), and without the
// other losses, Accuracy, Silence, HDF5Output, and whatever only they need, labels first of all.
// Its outputs are those of the TEST net, the probabilities, and what the other losses compare with
// labels or one another, if it is computed and still an output (of EuclideanLoss what is learned,
// on either side); or the blobs that `outputs` names. The layers that stay keep their names, by
// which weight files know them. Requires: the net is in the newest form.
//
// Errors: kConfig, for an output that there is not, for an input whose shape is not given, and if
// nothing but inputs is left.
Result<caffe::NetParameter> deploy_net(const caffe::NetParameter& net,
                                       const DeployOptions& options);

// One of the blobs that deploy_net() makes inputs.
struct DeployInput {
  std::string blob;
  std::optional<Shape> shape;  // if the net gives it: that of a data layer depends on the data
};

// In the net's order. Errors: as deploy_net()'s for outputs; kConfig for an Input layer's shape.
Result<std::vector<DeployInput>> deploy_inputs(const caffe::NetParameter& net,
                                               const DeployOptions& options);

// The net's layers with the values that `weights` has for them, by name.
caffe::NetParameter with_weights(const caffe::NetParameter& net,
                                 const caffe::NetParameter& weights);

// The layers of `net` that `deployed`, which deploy_net() made of it, lacks: those of its TRAIN
// phase, and what only Silence reads, among others. Without values.
std::vector<caffe::LayerParameter> layers_left_out(const caffe::NetParameter& net,
                                                   const caffe::NetParameter& deployed);

}  // namespace speedo
