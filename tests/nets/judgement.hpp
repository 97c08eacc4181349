#pragma once

namespace speedo::nets {

// A value may differ from the reference's by this share of the largest in its array: room for
// another order of sums, none for a fault.
inline constexpr double kTolerance = 1e-5;

enum class Kind {
  kRight,      // within the tolerance everywhere
  kSensitive,  // not so, but as the reference itself moves when its data move by a millionth, or
               // in a gradient that is nothing beside the net's others or its own terms
  kWrong,
};

// How an array differs from the reference's.
struct Difference {
  double error = 0.0;             // the largest difference
  double scale = 0.0;             // the reference's largest value
  double noise = 0.0;             // how far the reference's values move with their data
  double largest_gradient = 0.0;  // of the net's arrays; 0 if this one is no gradient
  double summed = 0.0;            // magnitudes of the gradients that a value of the array sums
  double terms = 0.0;             // how many those are
};
Kind judge(const Difference& difference);

}  // namespace speedo::nets
