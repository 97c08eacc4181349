#pragma once

#include <speedo/backend/backward_reads.hpp>

namespace speedo {

// A function of one number that is applied to each element of an array, as a value: planners
// compare it, backends look it up. Caffe's neuron layers without parameters. To add one: an entry
// here, a line in backward_reads() and keeps_zero(), and two lines in each backend.
enum class UnaryKind {
  kAbs,      // |x|; slope 0 at 0
  kBnll,     // log(1 + e^x); Caffe's binomial normal log likelihood
  kClip,     // x within [a, b]; slope 1 at its ends
  kElu,      // x > 0 ? x : a (e^x - 1) (Clevert et al. 2015)
  kExp,      // b e^(a x)
  kLog,      // c log(a x + b), natural
  kPower,    // (a x + b)^c, NaN where the base is below 0 and c not whole; where a or c is 0, the
             // constant b^c or 1, whatever x is
  kRelu,     // x > 0 ? x : a x
  kSigmoid,  // 1 / (1 + e^-x)
  kSwish,    // x / (1 + e^(-a x)) (Ramachandran et al. 2017)
  kTanh,
  kThreshold,  // x > a ? 1 : 0; slope 0
};

struct UnaryOp {
  UnaryKind kind = UnaryKind::kRelu;
  float a = 0.0F, b = 0.0F, c = 0.0F;  // where the kind has them

  bool operator==(const UnaryOp&) const = default;
};

// y = a x + b.
inline UnaryOp affine(float a, float b = 0.0F) { return {UnaryKind::kPower, a, b, 1.0F}; }
// y = x^exponent.
inline UnaryOp power(float exponent) { return {UnaryKind::kPower, 1.0F, 0.0F, exponent}; }

// Whether the slope is the same for every x.
inline bool has_fixed_slope(const UnaryOp& op) {
  const bool is_power = op.kind == UnaryKind::kPower;
  return op.kind == UnaryKind::kThreshold || (is_power && (op.c == 1.0F || op.a * op.c == 0.0F));
}

// What Backend::map_backward() reads: src is its x, dst its y.
inline BackwardReads backward_reads(const UnaryOp& op) {
  if (has_fixed_slope(op)) return {};
  switch (op.kind) {
    case UnaryKind::kExp:
    case UnaryKind::kSigmoid:
    case UnaryKind::kTanh:
      return {.src = false, .dst = true};
    // The result has the source's sign unless the slope below 0 turns it.
    case UnaryKind::kElu:
      return {.src = op.a < 0.0F, .dst = true};
    case UnaryKind::kRelu:
      return {.src = op.a < 0.0F, .dst = !(op.a < 0.0F)};
    case UnaryKind::kAbs:
    case UnaryKind::kBnll:
    case UnaryKind::kClip:
    case UnaryKind::kLog:
    case UnaryKind::kPower:
    case UnaryKind::kSwish:
    case UnaryKind::kThreshold:
      break;
  }
  return {.src = true, .dst = false};
}

// Whether the slope is another one below 0, and Backend::map_backward() reads y for it.
inline bool has_two_slopes_by_dst(const UnaryOp& op) {
  const bool has_two_slopes = op.kind == UnaryKind::kElu || op.kind == UnaryKind::kRelu;
  return has_two_slopes && backward_reads(op).dst;
}

// Whether 0 gives 0, and any gradient there a finite one: padding of blocked layouts stays zero.
inline bool keeps_zero(const UnaryOp& op) {
  switch (op.kind) {
    case UnaryKind::kAbs:
    case UnaryKind::kElu:
    case UnaryKind::kRelu:
    case UnaryKind::kSwish:
    case UnaryKind::kTanh:
      return true;
    case UnaryKind::kClip:
      return op.a <= 0.0F && op.b >= 0.0F;
    case UnaryKind::kPower:
      return op.b == 0.0F && op.c >= 1.0F;
    case UnaryKind::kThreshold:
      return !(op.a < 0.0F);
    case UnaryKind::kBnll:
    case UnaryKind::kExp:
    case UnaryKind::kLog:
    case UnaryKind::kSigmoid:
      break;
  }
  return false;
}

}  // namespace speedo
