#pragma once

#include <span>

namespace speedo {

// The arithmetic of merging, on ranges of arenas. Vectorised; ranges may be worked on in parallel
// and in any order with the same result, which is the same on every machine (no fused operations).
// Requires: equal sizes; inputs do not overlap outputs unless they are equal.

// target[i] = weights[i] + scale * contribution[i]. False if any result is NaN or infinite, which
// it is wherever the contribution is (target is then void).
bool merge_add(std::span<const float> weights, std::span<const float> contribution, float scale,
               std::span<float> target);

// As merge_add, but elements of the contribution smaller in magnitude than `skip` are not added.
bool merge_add_large(std::span<const float> weights, std::span<const float> contribution,
                     float scale, float skip, std::span<float> target);

// target[i] = weights[i] + scale * (a.scale * a.values[i] + b.scale * b.values[i]): the bits of
// merge_scaled(), merge_add() and merge_add() in one pass. False as above.
struct ScaledPart {
  std::span<const float> values;
  float scale;
};
bool merge_add_two(std::span<const float> weights, const ScaledPart& a, const ScaledPart& b,
                   float scale, std::span<float> target);
// target[i] = scale * (a.scale * a.values[i] + b.scale * b.values[i]), likewise.
bool merge_scaled_two(const ScaledPart& a, const ScaledPart& b, float scale,
                      std::span<float> target);

// sum[i] += contribution[i]. False as above.
bool merge_accumulate(std::span<const float> contribution, std::span<float> sum);

// target[i] = scale * contribution[i]; they may be the same. False as above.
bool merge_scaled(float scale, std::span<const float> contribution, std::span<float> target);

// EASGD (Zhang, Choromanska, LeCun 2015, eq. 3 and 4): elastic = rate * (x - centre), which the
// centre gains and x loses. Both give the same bits; the first takes it from x at once.
void elastic_difference(std::span<const float> centre, float rate, std::span<float> x,
                        std::span<float> elastic);
void elastic_part(std::span<const float> centre, float rate, std::span<const float> x,
                  std::span<float> elastic);

bool all_finite(std::span<const float> values);

}  // namespace speedo
