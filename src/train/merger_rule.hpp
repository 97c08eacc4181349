#pragma once

#include <cstdint>
#include <functional>
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
  using MakeBackend = std::function<Result<std::unique_ptr<Backend>>()>;
  static Result<std::unique_ptr<MergerRule>> create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    std::span<const float> weights,
                                                    const MakeBackend& make_backend,
                                                    const caffe::SolverState* state);

  // Puts elements [offset, ...) of the gradient in place, and keeps the same range of the histories
  // for take_back().
  void stage(std::size_t offset, std::span<const float> gradient);
  // After all were staged: the rule of `iteration` makes the next weights.
  void apply(std::int64_t iteration);
  // Elements [offset, ...) of the next weights.
  void read_weights(std::size_t offset, std::span<float> target);
  // Undoes apply(): the histories as they were, and `weights`.
  void take_back(std::span<const float> weights);

  std::vector<std::vector<float>> histories();

 private:
  MergerRule(std::unique_ptr<Backend> backend, std::unique_ptr<UpdateRule> rule);
  Result<void> allocate(std::span<const float> weights);

  std::unique_ptr<Backend> backend_;  // first: the others use it
  std::unique_ptr<UpdateRule> rule_;
  Arena weights_, gradient_;
  std::vector<Arena> saved_;  // the histories before apply()
};

}  // namespace speedo
