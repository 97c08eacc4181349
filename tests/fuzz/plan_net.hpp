#pragma once

#include <speedo/core/net.hpp>

#include "caffe.pb.h"

namespace speedo::fuzz {

// Plans the net without memory for it; bits of `flags`: 1 the phase TEST, 2 to be asked only.
// Data layers have generated data. Nothing if it has more layers than a fuzzer has time for.
void plan_net(const caffe::NetParameter& net, unsigned flags);

}  // namespace speedo::fuzz
