#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/core/update_rule.hpp>

namespace speedo {

// The solver's rule on the master, for gradient-only training: the mean gradient goes in chunk by
// chunk, the next weights come out chunk by chunk. What it does can be taken back before the next
// gradient. Thread safety: one thread, the one that creates it.
class MergerRule {
 public:
  using Histories = std::vector<std::vector<float>>;
  // `histories`: as many as the rule has, or none: zero. `backend` outlives the rule.
  static Result<std::unique_ptr<MergerRule>> create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    Backend& backend,
                                                    std::span<const float> weights,
                                                    const Histories& histories);

  // Puts elements [offset, ...) of the gradient in place, and keeps the same range of the histories
  // for take_back().
  void stage(std::size_t offset, std::span<const float> gradient);
  // After all were staged: the rule of `iteration`, its rate scaled, makes the next weights.
  void apply(std::int64_t iteration, float rate_scale);
  // Elements [offset, ...) of the next weights.
  void read_weights(std::size_t offset, std::span<float> target);
  // Undoes apply(): the histories as they were, and `weights`.
  void take_back(std::span<const float> weights);

  std::size_t history_count() const { return saved_.size(); }
  void read_history(std::size_t index, std::span<float> target);

 private:
  MergerRule(Backend& backend, std::unique_ptr<UpdateRule> rule);
  Result<void> allocate(std::span<const float> weights);

  Backend& backend_;
  std::unique_ptr<UpdateRule> rule_;
  Arena weights_, gradient_;
  std::vector<Arena> saved_;  // the histories before apply()
};

}  // namespace speedo
