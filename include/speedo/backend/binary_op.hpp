#pragma once

#include <optional>

#include <speedo/backend/unary_op.hpp>

namespace speedo {

// A function of two numbers that is applied to each pair of elements of two arrays, as a value. To
// add one: an entry here, and a line in each backend. Their gradients are of the families too, with
// g the gradient by the result z:
//
//   kind        by x                       by y
//   kSum        a g: affine(a)             b g: affine(b)
//   kProduct    g y: kProduct              g x: kProduct
//   kQuotient   g / y: kQuotient           -(g z) / y: kProduct, kQuotient, affine(-1)
//   kMaximum    kChosen of winners and g   likewise
enum class BinaryKind {
  kSum,       // a x + b y; y is not read where b is 0
  kProduct,   // x y
  kQuotient,  // x / y
  kMaximum,   // x > y ? x : y
  kChosen,    // x == a ? y : 0
};

struct BinaryOp {
  BinaryKind kind = BinaryKind::kSum;
  float a = 1.0F, b = 1.0F;  // where the kind has them; of kMaximum see ZipArrays::winners
  // Applied to the result before it is stored.
  std::optional<UnaryOp> activation = std::nullopt;

  bool operator==(const BinaryOp&) const = default;
};

// The arrays of Backend::zip(). z may equal x, y or both.
struct ZipArrays {
  const float* x = nullptr;
  const float* y = nullptr;
  float* z = nullptr;
  // kMaximum alone, or null: receives a where x is the greater, else b; where b is negative, it
  // keeps there what it has.
  float* winners = nullptr;
};

}  // namespace speedo
