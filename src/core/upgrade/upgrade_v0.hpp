#pragma once

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

bool has_v0_layers(const caffe::NetParameter& net);

// Turns V0 layers (2013: a string type and all options in one message) into V1 layers. Padding
// layers become the pad of the convolution or pooling that follows. Error: kConfig.
Result<void> upgrade_v0_to_v1(caffe::NetParameter& net);

}  // namespace speedo
