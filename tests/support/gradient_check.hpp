#pragma once

#include <string>
#include <vector>

#include <speedo/core/shape.hpp>

#include "support/layer_fixture.hpp"

namespace speedo {

// What to check besides the layer's text.
struct GradientCheck {
  std::vector<Shape> bottoms;
  int tops = 1;
  // Values of the bottoms: uniform in [low, high), except within `kink_range` of `kink`, where a
  // layer's gradient jumps.
  float low = -1.0F, high = 1.0F;
  float kink = 0.0F, kink_range = 0.0F;
  // If not 0: the values are the multiples of it in random order, for layers that compare values.
  float spacing = 0.0F;
  // Values of a bottom that holds labels instead: integers in [0, classes).
  int label_bottom = -1, classes = 0;
  // Bottoms from this one on get zeros for a gradient, whatever the tops make of them; -1: none.
  int cut_bottoms = -1;
  Phase phase = Phase::kTrain;
};

// Requires that the layer's gradients for every bottom and parameter element agree with central
// differences of step 1e-2 within 1e-3, relative to the larger of the two or 1, for a weighted sum
// of the tops. Also that parameter gradients are added to, but not those of statistics, and bottom
// gradients overwritten.
void check_gradient(const std::string& layer_text, const GradientCheck& check,
                    std::unique_ptr<Backend> backend);

// The same on the CPU backend, with two threads, and on the reference backend.
void check_on_all(const std::string& layer_text, const GradientCheck& check);

}  // namespace speedo
