#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/update.hpp>

namespace caffe {
class SolverParameter;
class SolverState;
}  // namespace caffe

namespace speedo {

class Backend;

struct MergerConfig {
  UpdateKind update = UpdateKind::kFullDelta;
  float factor = 1.0F;  // --factor: full deltas are divided by it
  float skip = 0.0F;    // --skip: delta elements smaller in magnitude are not added
  int threads = 2;      // merge arithmetic, over chunks
};

struct MergeResult {
  Version version;
  std::vector<WorkerId> rejected;  // not finite, missing, corrupt, of another model or run
};

// Owner of the master's weights. Reads contributions chunk by chunk, merges chunk k while k+1 is
// read and k-1 written, publishes the new version (manifest last) and only then makes it its own: a
// merge happens whole or not at all, and a rejected contribution leaves no trace. Jobs are queued
// and done in order on the merger's own threads; callbacks run there. When idle it looks every
// second whether the store still has the weights, and publishes them again if not. Destruction ends
// queued merges and publications with kUnavailable. Thread safety: all methods from any thread.
class Merger {
 public:
  virtual ~Merger() = default;
  // Contributions are added in the order given: without `mean` W += weight / factor * delta for
  // each, with it W += (sum of weight * delta) * (1 / count) / factor. kGradientOnly: the mean or
  // sum goes through the solver's rule. Errors: those of the store after its retries, kNotFinite if
  // the rule makes non-finite weights of finite gradients; then weights, histories and version are
  // unchanged.
  virtual void merge(master_command::StartMerge job,
                     std::function<void(Result<MergeResult>)> done) = 0;
  // Publishes the weights as they are (start, or Redis came back empty).
  virtual void publish(std::function<void(Result<Version>)> done) = 0;
  // A copy of weights and solver histories as of all merges queued before.
  struct Copy {
    Version version;
    std::vector<float> weights;
    std::vector<std::vector<float>> histories;
  };
  virtual void copy(std::function<void(Copy)> done) = 0;
};

// `weights`: the start, layout.element_count() floats. Publishes nothing by itself at the start.
//
// For kGradientOnly `solver` gives the rule, `make_backend` its device (called on the merger's
// thread) and `state`, unless null, the histories of a snapshot; all three are only used there.
// Errors: those of UpdateRule::create and load, and of make_backend.
Result<std::unique_ptr<Merger>> make_merger(
    const MergerConfig& config, const ParameterLayout& layout, const caffe::SolverParameter& solver,
    std::vector<float> weights, Version first_version, std::shared_ptr<ParameterStore> store,
    std::function<Result<std::unique_ptr<Backend>>()> make_backend = {},
    const caffe::SolverState* state = nullptr);

}  // namespace speedo
