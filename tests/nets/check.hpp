#pragma once

#include <string>

#include "nets/computed.hpp"

namespace speedo::nets {

// A value may differ from the reference's by this share of the largest in its array: room for
// another order of sums, none for a fault.
inline constexpr double kTolerance = 1e-5;

// What came of one net on the CPU backend, with one and two threads, for every purpose.
struct Verdict {
  enum class Kind {
    kRight,      // within the tolerance everywhere
    kSensitive,  // not so, but as the reference itself moves when its data move by a millionth, or
                 // in a gradient that is nothing beside the net's others
    kWrong,
  };
  Kind kind = Kind::kRight;
  std::string what;  // where it is worst, unless kRight
};

Verdict check(const caffe::NetParameter& net, std::uint64_t data_seed);

}  // namespace speedo::nets
