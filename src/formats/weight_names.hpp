#pragma once

#include <string>
#include <vector>

#include "caffe.pb.h"

namespace speedo {

// A parameter's name where weights go by one: the layer's name, a dot, and what the layer's type
// calls it ("conv1.weight", "conv1.bias"), or its number where the type is unknown ("conv1.0").
// BatchNorm's are mean_sum, variance_sum and weight, Caffe's sums and what divides them; LSTM's and
// RNN's weight_x, bias, weight_static (if there is such a bottom), weight_h, and RNN's weight_o,
// bias_o.
std::string weight_name(const caffe::LayerParameter& layer, int blob, int blobs);

// The same with the number, which readers take as well.
std::string numbered_weight_name(const std::string& layer, int blob);

}  // namespace speedo
