#pragma once

#include <cstdint>
#include <string>

namespace speedo::nets {

// A net's prototxt, drawn from `seed`: an input of 1 to 4 samples and 1 to 40 channels, one to six
// steps (each a layer or a join of branches) of those that Caffe takes, and a loss at its end or
// ends. Small enough for the reference backend's loops; phase in `state`.
std::string draw_net(std::uint64_t seed);

}  // namespace speedo::nets
