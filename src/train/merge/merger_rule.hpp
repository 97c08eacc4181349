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
// bucket, the next weights come out bucket by bucket, each as soon as the rule allows, and in the
// same place. What a merge does is kept or taken back. Where the device's memory is the host's all
// is done there, and the weights are read where the master has them; elsewhere they have copies.
// Thread safety: one thread, the one that creates it.
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

  // What a merge is of. Both spans are of all weights, and in the host's memory.
  struct Step {
    std::int64_t iteration;
    float rate_scale;
    std::span<const float> weights;  // as they were before the merge
    std::span<float> next;           // of each part first the mean gradient, then the next weights
  };
  // The gradient of a part is in `next`. Each element once a merge.
  void stage(const Step& step, const Bucket& part);
  // The same of a part that `form` makes where the rule reads it. Error: its own; nothing is staged
  // then.
  Result<void> stage_formed(const Step& step, const Bucket& part,
                            const std::function<Result<void>(float* gradients)>& form);
  // The rule of the step's iteration, its rate scaled, on a bucket that is staged.
  void begin(const Step& step, const Bucket& bucket);
  // The next weights of a part of it are in `next`. False: one of them is NaN or infinite.
  bool read_weights(const Step& step, const Bucket& part);
  // Ends the merge: what it did stays. Requires: all of it was staged.
  void keep();
  // Undoes the merge: the histories as they were, and `weights`.
  void take_back(std::span<const float> weights);

  std::size_t history_count() const { return kept_.size(); }
  // As of the last merge that was kept.
  void read_history(std::size_t index, std::span<float> target);

 private:
  MergerRule(Backend& backend, std::unique_ptr<UpdateRule> rule);
  Result<void> allocate(std::span<const float> weights);
  void copy_histories(const Bucket& part);
  bool is_direct() const { return backend_.device().memory() == MemoryKind::kHost; }
  // Whole arenas, as the rule takes them.
  float* gradients(const Step& step) { return is_direct() ? step.next.data() : gradient_.data(); }

  Backend& backend_;
  std::unique_ptr<UpdateRule> rule_;
  Arena gradient_, weights_;  // where the device's memory is its own
  // The histories as of the last merge that was kept. A merge works in the rule's own, into which
  // parts of these are copied as they are staged.
  std::vector<Arena> kept_;
  std::int64_t staged_ = 0;  // elements, in this merge
};

}  // namespace speedo
