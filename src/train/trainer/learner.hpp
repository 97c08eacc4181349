#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/batch_feed.hpp>
#include <speedo/core/bucket.hpp>
#include <speedo/core/factor_shape.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/train/trainer.hpp>

#include "caffe.pb.h"
#include "core/solver/quiet_steps.hpp"

namespace speedo {

// What a worker computes gradients with: a net and its data. Weights and gradients are arenas of
// layout(), in the backend's memory; whoever has the learner changes them between passes.
// Thread safety: made, used and destroyed on one thread.
class Learner {
 public:
  virtual ~Learner() = default;
  virtual const ParameterLayout& layout() const = 0;
  virtual Backend& backend() = 0;
  virtual Arena& weights() = 0;
  virtual Arena& gradients() = 0;
  // Whether passes can find the weights in other memory of the host than weights().
  virtual bool can_read_weights_elsewhere() const { return false; }
  // They do so from here on, but for statistics, which stay in weights(); the rest of it is void
  // meanwhile. `place` lies like it, and nothing is written there. Null: all are in weights()
  // again. Requires: they can.
  virtual void read_weights_from(const float* /*place*/) {}
  // Where passes find them.
  virtual const float* weights_read() { return weights().data(); }

  // The batches that the next passes read.
  virtual void set_batch_span(const BatchSpan& span) = 0;
  // What a run does meanwhile. Each may be empty.
  struct Hooks {
    // Before a bucket's weights are first used by the first pass; in the end of all of them. Its
    // error ends the passes.
    std::function<Result<void>(const Bucket&)> weights_needed;
    // The last pass' loss is finite, and its gradients are about to be computed.
    std::function<void()> last_backward;
    // After that: a bucket's gradients are the sum over all passes once `final` is done. Every
    // element once.
    std::function<void(const Bucket&, const StreamEvent& final)> gradient_ready;
  };
  // Puts into gradients() the sum of so many passes' gradients; the mean of their losses. Whether
  // the gradients are finite is the caller's to see. Errors: those of Net::forward().
  virtual Result<float> accumulate_gradients(int passes, const Hooks& hooks) = 0;
  // What was not finite first, for people: of the values in the passes of the last
  // accumulate_gradients(), which are run again; the gradients of a range, as they are. "": nothing
  // is found. Requires: the weights are as they were; then set_batch_span() comes first. Errors:
  // kData.
  virtual Result<std::string> find_non_finite_values() { return std::string(); }
  virtual std::string find_non_finite_gradients(const Bucket& /*range*/) { return {}; }
  // Steps of so many passes by this rule that wait for no loss, where the learner has any. The rule
  // and the learner outlive them. Error: kFull.
  virtual Result<std::unique_ptr<QuietSteps>> make_quiet_steps(UpdateRule& /*rule*/,
                                                               int /*passes*/) {
    return std::unique_ptr<QuietSteps>();
  }
  // They have made so many passes more: the batches of these come before the next ones'.
  virtual void has_passed_quietly(int /*passes*/) {}
  virtual std::uint64_t batch_size() const = 0;  // samples of a pass; 0: not known
  // How long passes have waited for data so far.
  virtual std::chrono::nanoseconds data_waited() const = 0;
  // What its data had to be forgiven since somebody asked last.
  virtual ReadFaults take_read_faults() { return {}; }
  // How long they have gone forward so far, with what they waited for meanwhile.
  virtual std::chrono::nanoseconds gone_forward() const = 0;

  // Statistics among the weights (BatchNorm's), which passes change: remembers them, and puts what
  // they lost since then into their places of gradients(), an update like any other.
  virtual void keep_statistics() = 0;
  virtual void put_statistics_change_into_gradients() = 0;
  // Makes them what they were when they were remembered.
  virtual void restore_statistics() {}

  // Makes them, and what layers carry from pass to pass, what they were before the first quiet step
  // whose loss was not finite.
  virtual void restore_step_statistics() {}

  // See Net. None: its gradients have no factors.
  virtual std::vector<FactorShape> factor_shapes() const { return {}; }
  virtual void leave_factors(std::span<const FactorShape> /*shapes*/) {}
  // A step is about to be applied to some of the weights, with products of factors of so many
  // multiplications and additions. False: it is not wanted, its time was taken.
  virtual bool wants_step(double /*multiply_adds*/) { return true; }
  // An update was made of gradients, which has taken so long and belongs to the step.
  virtual void has_updated(Instant /*took*/) {}
};

struct LearnerOptions {
  const JobSpec& job;
  const caffe::SolverParameter& solver;  // the job's, without test nets
  double start_fraction;                 // see FeedOptions
  std::atomic<std::uint64_t>& progress;  // grows with every layer computed; outlives the learner
};

class Net;
// Samples of a pass, those of the net's first source; 0: not known.
std::uint64_t batch_size_of(const Net& net);

// The train net of the job's solver. Errors: kConfig, kData, kNotFound, kFull.
Result<std::unique_ptr<Learner>> make_net_learner(const TrainerParts& parts,
                                                  const LearnerOptions& options);

}  // namespace speedo
