#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/bucket.hpp>
#include <speedo/core/parameter_arena.hpp>

namespace caffe {
class SolverParameter;
class SolverState;
}  // namespace caffe

namespace speedo {

class Backend;
struct SgdStep;
struct UpdateRange;

// The rate of `iteration` by the solver's lr_policy (fixed, step, exp, inv, multistep, poly,
// sigmoid), before lr_mult. A pure function of the iteration: a resumed run has the rates of an
// unbroken one. Error: kConfig for an unknown policy or a field that its formula cannot use.
Result<float> learning_rate(const caffe::SolverParameter& solver, std::int64_t iteration);
// Completed steps of the policies step and multistep in the rate of `iteration`; 0 for the others.
std::int32_t current_step(const caffe::SolverParameter& solver, std::int64_t iteration);

// What a solver does with a gradient: Caffe's clip (on the sum over iter_size passes), division by
// iter_size, weight decay, and the solver type's own formula with its history. It works on whole
// arenas and knows no net, so the master can run it on gradients sent by workers.
// Thread safety: one thread at a time.
class UpdateRule {
 public:
  // Error: kConfig for bad solver fields, also those that Caffe refuses with the type; kFull.
  static Result<std::unique_ptr<UpdateRule>> create(const caffe::SolverParameter& solver,
                                                    const ParameterLayout& layout,
                                                    Backend& backend);
  // How many histories a rule of this solver has. Errors: those of create(), kFull aside.
  static Result<std::size_t> history_count(const caffe::SolverParameter& solver);
  // Whether solvers of these types keep the same histories, so that one goes on from the other's.
  static bool have_same_histories(std::string_view type, std::string_view other);
  static constexpr std::size_t kHistoriesMax = 2;  // of any solver
  virtual ~UpdateRule();
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;

  // Whether one step needs all of the gradient before any of it can be used: clipping by norm does.
  // Otherwise the step may be done bucket by bucket, in any order, as they become final.
  bool needs_whole_gradient() const;

  // Turns the gradient in `bucket` (summed over iter_size passes) into the update, in place, and
  // advances the history there. What lies in the places of statistics is the update already. The
  // pointers are those of whole arenas. Requires: each element once a step, by buckets within the
  // arena; the whole arena as one if needs_whole_gradient().
  void compute_update(std::int64_t iteration, const Bucket& bucket, const float* weights,
                      float* gradients);
  // The same, but what is left is the change of the weights: minus the update.
  void compute_delta(std::int64_t iteration, const Bucket& bucket, const float* weights,
                     float* gradients);
  // compute_update(), then weights -= gradients.
  void update(std::int64_t iteration, const Bucket& bucket, float* weights, float* gradients);
  // Of the whole arena.
  void compute_update(std::int64_t iteration, const float* weights, float* gradients) {
    compute_update(iteration, whole(), weights, gradients);
  }
  void update(std::int64_t iteration, float* weights, float* gradients) {
    update(iteration, whole(), weights, gradients);
  }

  // update() of the whole arena on a backend with DeviceSteps, guarded by theirs, which have rate()
  // of the iteration. Statistics stay as they are. Requires: can_be_guarded().
  void update_guarded(const float* guard, float* weights, float* gradients);
  // Whether the rule's weights and histories can be; its gradients need not be.
  virtual bool can_be_guarded() const { return false; }
  // The policy's rate, scaled and corrected. Requires: the solver passed the checks of create().
  float rate(std::int64_t iteration) const;

  // From here on the policy's rate is multiplied with this. Requires: finite, not negative.
  void scale_rate(float scale);
  // How many updates the histories hold when the next one is made, which Adam's correction of its
  // rate depends on. Unless it is given, as many as the iteration: as in Caffe, whose histories
  // begin at zero with iteration 0.
  void set_updates_held(std::int64_t updates) { updates_held_ = updates; }

  // History arenas, in Caffe's order of blocks (SGD: one).
  virtual std::vector<Arena*> histories() = 0;

  // Caffe's SolverState: iteration (updates done so far), history blobs, current_step. load()
  // returns the iteration; on an error (kMismatch, naming the parameter, or that it is of another
  // solver type) the history is unchanged.
  void save(caffe::SolverState& state, std::int64_t iteration);
  Result<std::int64_t> load(const caffe::SolverState& state);

 protected:
  // The formula, on parts of parameters that are no statistics; pointers as above. What is left has
  // the step's sign.
  using Parts = std::span<const UpdateRange>;
  virtual void compute_parts(const SgdStep& step, Parts parts, const float* weights,
                             float* gradients) = 0;
  virtual void update_parts(const SgdStep& step, Parts parts, float* weights, float* gradients);
  // What the rate is multiplied with when the histories hold so many updates.
  virtual float rate_correction(std::int64_t /*updates*/) const { return 1.0F; }

  UpdateRule(const caffe::SolverParameter& solver, const ParameterLayout& layout,
             Backend& backend);

  const caffe::SolverParameter& solver() const { return *solver_; }
  const ParameterLayout& layout() const { return layout_; }
  Backend& backend() const { return backend_; }

 private:
  Bucket whole() const { return {0, layout_.element_count()}; }
  double squared_norm(const float* gradients) const;
  // What the summed gradient is multiplied with before anything else: Caffe's clip factor, found on
  // the sum, divided by iter_size.
  float gradient_scale(const Bucket& bucket, const float* gradients) const;
  // What to do with all gradients: gradient_scale() given. Its sign is 1.
  SgdStep common_step(float gradient_scale) const;
  // The parts of parameters in the bucket: rate() of the iteration given, weight_decay x decay_mult
  // as the coefficient of the weight or of its sign. Valid until the next call.
  Parts parts_of(const Bucket& bucket, float rate);
  template <class Visit>
  void for_each_statistic(const Bucket& bucket, const Visit& visit) const;

  std::unique_ptr<caffe::SolverParameter> solver_;
  ParameterLayout layout_;
  Backend& backend_;
  float rate_scale_ = 1.0F;
  std::optional<std::int64_t> updates_held_;
  std::vector<UpdateRange> parts_;
};

}  // namespace speedo
