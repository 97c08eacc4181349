#pragma once

#include <cstdint>
#include <functional>
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
// does is kept or taken back. Where the device's memory is the host's the gradient is formed in
// place and the weights are read where the master has them; elsewhere both have copies there.
// Thread safety: one thread, the one that creates it; gradient() on any, of each part once at a
// time.
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
  // Elements that are best staged, applied and read at once, so that the passes over them find them
  // in a cache; on a device with memory of its own as many as there are.
  std::int64_t block_length() const;
  // Where a part of the mean gradient is formed.
  std::span<float> gradient(const Bucket& part);
  // It is there; the same part of the histories is remembered for take_back(). Each element once a
  // merge.
  void stage(const Bucket& part);
  // The same of a part that `form` makes in the device's own arena of gradients. Error: its own;
  // nothing is staged then.
  Result<void> stage_formed(const Bucket& part,
                            const std::function<Result<void>(float* gradients)>& form);
  // The rule of `iteration`, its rate scaled, on a bucket that is staged. `weights`: all, as they
  // were before the merge.
  void begin(std::int64_t iteration, float rate_scale, const Bucket& bucket,
             std::span<const float> weights);
  // The next weights of a part of it. False: one of them is NaN or infinite.
  bool read_weights(const Bucket& part, std::span<const float> weights, std::span<float> next);
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
  void remember(const Bucket& part);
  bool is_direct() const { return backend_.device().memory() == MemoryKind::kHost; }

  Backend& backend_;
  std::unique_ptr<UpdateRule> rule_;
  Arena gradient_;
  // Where the device's memory is its own: its weights, and where the host forms the gradient.
  Arena weights_;
  std::vector<float> host_gradient_;
  std::vector<Arena> saved_;    // the histories before begin(), where something is staged
  std::vector<Bucket> staged_;  // in this merge
};

}  // namespace speedo
