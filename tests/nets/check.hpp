#pragma once

#include <string>

#include "nets/computed.hpp"
#include "nets/judgement.hpp"

namespace speedo::nets {

// What came of one net on the CPU backend, with one and two threads, now and then three, for every
// purpose.
struct Verdict {
  Kind kind = Kind::kRight;
  std::string what;  // where it is worst, unless kRight
};

Verdict check(const caffe::NetParameter& net, std::uint64_t data_seed);

}  // namespace speedo::nets
