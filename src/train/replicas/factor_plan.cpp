#include "train/replicas/factor_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/memory_limit.hpp"

namespace speedo {

double gradient_bytes(const FactorShape& shape) {
  return 2.0 * sizeof(float) * static_cast<double>(shape.height) *
         static_cast<double>(shape.width);
}

double factor_bytes(const FactorShape& shape, std::uint64_t workers) {
  return sizeof(float) * static_cast<double>(shape.factor_count()) *
         (1.0 + static_cast<double>(workers));
}

std::vector<FactorShape> choose_factors(std::span<const FactorShape> possible,
                                        std::uint64_t workers) {
  std::vector<FactorShape> chosen;
  for (const FactorShape& shape : possible) {
    if (factor_bytes(shape, workers) < gradient_bytes(shape)) chosen.push_back(shape);
  }
  return chosen;
}

std::vector<FactorShape> choose_factors(const UpdateSpec& update,
                                        std::span<const FactorShape> possible,
                                        std::uint64_t workers) {
  if (!update.replicated || !update.factors) return {};
  return choose_factors(possible, workers);
}

bool any_factors(std::span<const UpdateSpec> updates, std::span<const FactorShape> possible,
                 std::uint64_t workers) {
  return std::ranges::any_of(updates, [&](const UpdateSpec& update) {
    return !choose_factors(update, possible, workers).empty();
  });
}

std::string describe_factors(const ParameterLayout& layout, std::span<const FactorShape> factors,
                             std::uint64_t workers) {
  if (factors.empty()) return "no gradients as factors";
  std::string names;
  double as_factors = 0.0, as_gradients = 0.0;
  for (const FactorShape& shape : factors) {
    if (!names.empty()) names += ", ";
    names += layout.slots()[shape.slot].layer;
    as_factors += factor_bytes(shape, workers);
    as_gradients += gradient_bytes(shape);
  }
  return fmt::format("{} as factors: {} instead of {} a worker and round", names,
                     format_bytes(static_cast<std::int64_t>(as_factors)),
                     format_bytes(static_cast<std::int64_t>(as_gradients)));
}

}  // namespace speedo
