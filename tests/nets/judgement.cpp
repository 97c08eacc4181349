#include "nets/judgement.hpp"

#include <algorithm>
#include <cfloat>

namespace speedo::nets {
namespace {

// Rounding in float, against that of data by a millionth and sums in double.
constexpr double kNoiseFactor = 12.0;
// An array that moves by this share of its largest value says nothing: what should be 0, as the
// gradient of a bias before a BatchNorm, is the rounding of a sum that cancels.
constexpr double kNothingButNoise = 0.5;
// A gradient array's sums may cancel, and are left with the rounding of their terms, which shows
// in little noise where they cancel whatever the data. It may be as large as the tolerance of the
// net's largest gradient; but an array that moves by less than this share of its largest value may
// not be off by more than it: that is a fault that strikes nothing else.
constexpr double kShareOfItsOwn = 1e-3;

// What rounding leaves of the terms, whether data move them or not: each is rounded by up to half
// a unit in its last place, and may be to the same side where all are alike; and so are the steps
// of the sum, which kernels of few lanes make in few parts.
double rounding_of_terms(const Difference& it) { return 2.0 * FLT_EPSILON * it.summed; }

// Of a sum that a kernel makes term by term, as oneDNN does a bias's: each step is rounded by up to
// half a unit in the sum's last place, and a quarter of them to the same side where terms repeat.
double rounding_of_steps(const Difference& it) {
  return std::min(0.125 * FLT_EPSILON * it.terms, kShareOfItsOwn) * it.scale;
}

// How large the rounding of sums, also of those that cancel, may be.
double left_of_sums(const Difference& it) {
  const double of_net = kTolerance * it.largest_gradient;
  const double of_its_own = kShareOfItsOwn * it.scale;
  const double of_sums = it.noise >= of_its_own ? of_net : std::min(of_net, of_its_own);
  return std::max({of_sums, rounding_of_terms(it), rounding_of_steps(it)});
}

}  // namespace

Kind judge(const Difference& it) {
  if (it.error <= kTolerance * it.scale) return Kind::kRight;
  if (it.error > std::max(kNoiseFactor * it.noise, left_of_sums(it))) return Kind::kWrong;
  const double moves = std::max(it.noise, rounding_of_terms(it));
  return moves >= kNothingButNoise * it.scale ? Kind::kRight : Kind::kSensitive;
}

}  // namespace speedo::nets
