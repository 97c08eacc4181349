#pragma once

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Removes the layers whose include and exclude rules keep them out of a net in this state. Error:
// kConfig for a layer that has both kinds of rules.
Result<void> filter_layers(const caffe::NetState& state, caffe::NetParameter& net);

}  // namespace speedo
