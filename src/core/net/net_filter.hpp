#pragma once

#include <functional>
#include <string>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Called with a sentence, in Caffe's words, for each rule that a state does not meet. May be empty.
using RuleUnmet = std::function<void(const std::string& why)>;

// Removes the layers whose include and exclude rules keep them out of a net in this state. Error:
// kConfig for a layer that has both kinds of rules.
Result<void> filter_layers(const caffe::NetState& state, caffe::NetParameter& net,
                           const RuleUnmet& unmet = {});

}  // namespace speedo
