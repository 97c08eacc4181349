#include "support/gradient_check.hpp"

#include <algorithm>
#include <cmath>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

constexpr float kStep = 1e-2F;
constexpr double kThreshold = 1e-3;
constexpr float kAlreadyThere = 0.5F;  // in parameter gradients before the backward pass

bool is_loss(LayerFixture& it) { return it.layer().default_loss_weight(0) != 0.0F; }

// No gradient goes there.
bool is_statistic(LayerFixture& it, std::size_t parameter) {
  return it.layer().parameter_requests()[parameter].is_statistic;
}

// Fixed weights of the objective; a loss has its loss weight, and tops without gradients none.
float objective_weight(LayerFixture& it, std::size_t top, std::int64_t index) {
  if (top > 0) return 0.0F;
  if (is_loss(it)) return 1.7F;
  return 0.5F + 0.25F * static_cast<float>((index * 7 + 3) % 5);
}

double objective(LayerFixture& it) {
  REQUIRE(it.forward().has_value());
  double sum = 0.0;
  for (std::size_t t = 0; t < it.top_count(); ++t) {
    const auto values = it.top_values(t);
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += static_cast<double>(objective_weight(it, t, static_cast<std::int64_t>(i))) * values[i];
    }
  }
  return sum;
}

// The multiples of `spacing` around zero, one per bottom element, shuffled.
std::vector<float> make_ladder(LayerFixture& it, float spacing, Random& random) {
  std::int64_t count = 0;
  for (std::size_t b = 0; b < it.bottom_count(); ++b) count += it.bottom(b).count();
  std::vector<float> ladder;
  for (std::int64_t i = 0; i < count; ++i) {
    ladder.push_back(spacing * static_cast<float>(i - count / 2));
    std::swap(ladder.back(), ladder[random.below(ladder.size())]);
  }
  return ladder;
}

void fill_bottoms(LayerFixture& it, const GradientCheck& check, Random& random) {
  std::vector<float> ladder = make_ladder(it, check.spacing, random);
  for (std::size_t b = 0; b < it.bottom_count(); ++b) {
    const bool is_label = static_cast<int>(b) == check.label_bottom;
    std::vector<float> values;
    while (static_cast<std::int64_t>(values.size()) < it.bottom(b).count()) {
      if (is_label) {
        values.push_back(
            static_cast<float>(random.below(static_cast<std::uint64_t>(check.classes))));
        continue;
      }
      if (check.spacing > 0.0F) {
        values.push_back(ladder.back());
        ladder.pop_back();
        continue;
      }
      const float value = random.uniform(check.low, check.high);
      if (std::fabs(value - check.kink) >= check.kink_range) values.push_back(value);
    }
    it.set_bottom(b, values);
  }
}

void check_values(LayerFixture& it, const std::string& what, Tensor& tensor,
                  const std::vector<float>& gradient) {
  std::vector<float> values = tensor.values(it.backend());
  const auto objective_at = [&](std::size_t i, float value) {
    values[i] = value;
    tensor.set_values(it.backend(), values);
    return objective(it);
  };
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float before = values[i];
    const double above = objective_at(i, before + kStep);
    const double below = objective_at(i, before - kStep);
    values[i] = before;
    tensor.set_values(it.backend(), values);
    const double estimate = (above - below) / (2.0 * double{kStep});
    const double scale = std::max({std::fabs(estimate), std::fabs(double{gradient[i]}), 1.0});
    INFO(what << " element " << i);
    REQUIRE(double{gradient[i]} == Approx(estimate).margin(kThreshold * scale).epsilon(0.0));
  }
}

}  // namespace

void check_gradient(const std::string& layer_text, const GradientCheck& check,
                    std::unique_ptr<Backend> backend) {
  INFO(layer_text << " on backend " << backend->name());
  LayerFixture it(layer_text, std::move(backend), check.phase);
  const auto built = it.build(check.bottoms, check.tops);
  INFO((built ? std::string() : built.error().message));
  REQUIRE(built.has_value());
  Random random(test::varied(42));
  fill_bottoms(it, check, random);
  for (std::size_t p = 0; p < it.parameter_count(); ++p) {
    Tensor& parameter = it.parameter(p);
    std::vector<float> values(static_cast<std::size_t>(parameter.count()));
    for (float& value : values) {
      // Sums of variances among them, and their weight.
      value = is_statistic(it, p) ? random.uniform(0.5F, 1.5F) : random.uniform(-1.0F, 1.0F);
    }
    parameter.set_values(it.backend(), values);
    parameter.set_gradients(it.backend(), std::vector<float>(values.size(), kAlreadyThere));
  }

  REQUIRE(it.forward().has_value());
  for (std::size_t t = 0; t < it.top_count(); ++t) {
    std::vector<float> weights;
    for (std::int64_t i = 0; i < it.top(t).count(); ++i) {
      weights.push_back(objective_weight(it, t, i));
    }
    it.top(t).set_gradients(it.backend(), weights);
  }
  for (std::size_t b = 0; b < it.bottom_count(); ++b) {
    // Only what is overwritten can be right afterwards; memory shared with a top holds its
    // gradient.
    Tensor& bottom = it.bottom(b);
    if (bottom.grad() != it.top(0).grad()) {
      it.backend().fill(bottom.count(), NAN, bottom.grad());
    }
  }
  it.backward();

  std::vector<std::vector<float>> bottom_grads, parameter_grads;
  for (std::size_t b = 0; b < it.bottom_count(); ++b) {
    bottom_grads.push_back(it.bottom(b).gradients(it.backend()));
  }
  for (std::size_t p = 0; p < it.parameter_count(); ++p) {
    auto& values = parameter_grads.emplace_back(it.parameter(p).gradients(it.backend()));
    for (float& value : values) value -= kAlreadyThere;
  }
  for (std::size_t b = 0; b < it.bottom_count(); ++b) {
    if (!it.propagate[b]) continue;
    if (check.cut_bottoms >= 0 && b >= static_cast<std::size_t>(check.cut_bottoms)) {
      REQUIRE(bottom_grads[b] == std::vector<float>(bottom_grads[b].size(), 0.0F));
      continue;
    }
    check_values(it, "bottom " + std::to_string(b), it.bottom(b), bottom_grads[b]);
  }
  for (std::size_t p = 0; p < it.parameter_count(); ++p) {
    if (is_statistic(it, p)) {
      REQUIRE(parameter_grads[p] == std::vector<float>(parameter_grads[p].size(), 0.0F));
      continue;
    }
    check_values(it, "parameter " + std::to_string(p), it.parameter(p), parameter_grads[p]);
  }
}

void check_on_all(const std::string& layer_text, const GradientCheck& check) {
  check_gradient(layer_text, check, test::make_backend(2));
  check_gradient(layer_text, check, make_reference_backend());
}

}  // namespace speedo
