#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/bucket.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/core/update_rule.hpp>

namespace speedo {

// The solver's rule on the master, for gradient-only training: the mean gradient goes in bucket by
// bucket, the next weights come out bucket by bucket, each as soon as the rule allows. What a merge
// does is kept or taken back. Thread safety: one thread, the one that
// creates it.
class MergerRule {
 public:
  using Histories = std::vector<std::vector<float>>;
  // `histories`: as many as the rule has, or none: zero. `backend` outlives the rule.
  static Result<std::unique_ptr<MergerRule>> create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    Backend& backend,
                                                    std::span<const float> weights,
                                                    const Histories& histories);

  // See UpdateRule: then all is staged before any of it is applied.
  bool needs_whole_gradient() const { return rule_->needs_whole_gradient(); }
  // Puts elements [offset, ...) of the gradient in place, and keeps the same range of the histories
  // for take_back(). Each element once a merge.
  void stage(std::size_t offset, std::span<const float> gradient);
  // The rule of `iteration`, its rate scaled, makes the next weights of a bucket that is staged.
  void apply(std::int64_t iteration, float rate_scale, const Bucket& bucket);
  // Elements [offset, ...) of the next weights.
  void read_weights(std::size_t offset, std::span<float> target);
  // Ends the merge: what it did stays.
  void keep() { staged_.clear(); }
  // Undoes the merge: the histories as they were, and `weights`.
  void take_back(std::span<const float> weights);

  std::size_t history_count() const { return saved_.size(); }
  // As of the last merge that was kept.
  void read_history(std::size_t index, std::span<float> target);

 private:
  MergerRule(Backend& backend, std::unique_ptr<UpdateRule> rule);
  Result<void> allocate(std::span<const float> weights);

  Backend& backend_;
  std::unique_ptr<UpdateRule> rule_;
  Arena weights_, gradient_;
  std::vector<Arena> saved_;    // the histories before apply(), where something is staged
  std::vector<Bucket> staged_;  // in this merge
};

}  // namespace speedo
