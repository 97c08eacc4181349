#pragma once

namespace speedo {

// What Backend::reduce() makes of the elements of an array, or of the pairs of two. To add one: an
// entry here, and a line in each backend. Gradients by x, with g that by the result, are of map():
// affine(0, g) for kSum; kDot's and kSquareSum's are y and 2 x times g, affine(g) and affine(2 g).
enum class ReduceOp {
  kSum,
  kAbsSum,     // of |x|
  kSquareSum,  // of x^2
  kDot,        // of x y; the others do not read y
  kAllFinite,  // 1 if no element of x is infinite or NaN, else 0
};

}  // namespace speedo
