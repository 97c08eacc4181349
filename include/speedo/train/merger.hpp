#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/factor_shape.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/checkpoint.hpp>
#include <speedo/train/merge_job.hpp>
#include <speedo/train/update.hpp>
#include <speedo/train/weights_check.hpp>

namespace caffe {
class SolverParameter;
}  // namespace caffe

namespace speedo {

class Backend;
class SharedStore;
class StepParts;

struct MergerConfig {
  std::vector<UpdateSpec> stages = {UpdateSpec{}};
  // Merges between checkpoints of what the weights' record lacks (the rule's histories); 0: every
  // merge up to kPublishEachMergeBytesMax, else every tenth.
  std::uint64_t publish_interval = 0;
  std::uint64_t term = 0;  // names the workers' contributions
  // Records at least so long are merged ahead of order, see Merger::expect(): shorter ones are
  // merged sooner than they could be looked for.
  std::uint64_t ahead_bytes_min = std::uint64_t{4} << 20U;
  int threads = 2;      // merge arithmetic, over chunks; with fewer than 2 the merger's own
  Platform* platform = &real_platform();  // where the merger's own thread runs
  // The merger's store, if it shares memory with workers of this machine: while all of them do, new
  // weights are only shown there, and written to the store behind it every second or less often. A
  // job that goes on from the store has lost what was merged since then.
  std::shared_ptr<SharedStore> shared = nullptr;
  // Of a part of the weights, whose versions the manifest of another shows: a merge with a
  // contribution at fault is not made; the result names it.
  bool is_part = false;
  // Contributions are looked at whole before they are merged, which reads each twice: one of a
  // larger 2-norm than this is scaled down to it, and one of more than `outlier_factor` times the
  // median of the last ones' is left out. 0: neither. Only with kFullDelta and kGradientOnly that
  // are not replicated, and not of a part of the weights.
  double clip_norm = 0.0, outlier_factor = 0.0;
  // Of replicated updates: what workers may contribute as factors, and how many workers there are
  // to be, which decides what is cheaper.
  std::vector<FactorShape> factor_shapes = {};
  std::uint64_t expected_workers = 1;
  // Of replicated updates: where steps are made in parts; null: the merger itself makes them, in
  // one.
  std::shared_ptr<StepParts> step_parts = nullptr;
};

struct MergeResult {
  Version version;
  std::vector<WorkerId> rejected = {};  // not finite, missing, corrupt, of another model or run
  bool begun_ahead = false;             // of its order, see Merger::expect()
  // Those of them that were there, whole, and not finite; and those that were too large.
  std::vector<WorkerId> not_finite = {}, outliers = {};
  // Of replicated updates, the newest that there is.
  std::optional<WeightsCheck> check = std::nullopt;
};

// Owner of the master's weights. Reads contributions chunk by chunk, merges chunk k while k+1 is
// read and k-1 written, publishes the new version (manifest last) and only then makes it its own: a
// merge happens whole or not at all, and a rejected contribution leaves no trace. A merge that
// waits for what the store has lost is put off if it has lost something, and names that alone: the
// others are looked at again when it is ordered again. With replicated updates a version is
// published as the step that leads there (src/train/replicas), and its weights when somebody needs
// them whole, or the last merge is made. Jobs are queued and done in order on the merger's own
// threads; callbacks run there. When idle it looks every second whether the store still has the
// weights, and publishes them again if not. Destruction ends queued merges and publications with
// kUnavailable. Thread safety: all methods from any thread.
class Merger {
 public:
  virtual ~Merger() = default;
  // Contributions are added in the order given: without `mean` W += weight / factor * delta for
  // each, with it W += (sum of weight * delta) * (1 / count) / factor. kGradientOnly: the mean or
  // sum goes through the solver's rule. Elastic kinds: W += the sum, mean or not (the paper's
  // synchronous EASGD); with kElasticMaster each worker's e is formed from the same W, and
  // local_key() written with x - e before the weights. The new version carries the job's state.
  // Errors: those of the store but for transient ones (see stop_waiting()), kSuperseded, kNotFinite
  // if the rule makes non-finite weights of finite gradients; then weights, histories and version
  // are unchanged.
  // Requires: the job's stage was entered.
  virtual void merge(MergeJob job,
                     std::function<void(Result<MergeResult>)> done) = 0;
  // A merge that is likely to be ordered next; its id and state are not known yet. Contributions to
  // it are read and summed as far as they are written, and the next weights put into the store, but
  // not their manifest. If another merge is ordered, or a contribution is not what was read, the
  // merge is made anew. The same result, bit for bit. Requires: its stage was entered.
  virtual void expect(MergeJob job) = 0;
  // Makes ready for a stage and publishes the weights as they are, as a new version, with the
  // session's state: at the start, and between stages. The first stage is 0.
  virtual void enter_stage(std::uint32_t stage, std::string state,
                           std::function<void(Result<Version>)> done) = 0;
  // A copy of weights and solver histories as of all merges queued before. Histories outlast stages
  // that have no use for them.
  struct Copy {
    Version version;
    std::vector<float> weights;
    std::vector<std::vector<float>> histories;  // of the master's rule, or averaged
    std::string state;                          // of the session, as of that version
  };
  // Errors: those of the store, where the merger's memory has not all of it.
  virtual void copy(std::function<void(Result<Copy>)> done) = 0;
  // A merge and the entering of a stage wait for a store that fails with transient errors, be it
  // only to write. While one does: the error of its last attempt. Also that the weights are lost
  // for good, where that shows between merges: kCorrupt.
  virtual std::optional<Error> waits_because() = 0;
  // From here on they do not wait, and end with the store's error.
  virtual void stop_waiting() = 0;
};

// Publishes nothing by itself at the start: call enter_stage(). `start.version` is the version of
// the weights before that. Histories that no stage has use for are dropped. The store is fenced
// with the configuration's term.
//
// For kGradientOnly `solver` gives the rule, `make_backend` its device (called on the merger's
// thread). Errors: those of UpdateRule::create, and of make_backend; kMismatch for histories that
// are not the rule's.
Result<std::unique_ptr<Merger>> make_merger(
    const MergerConfig& config, const ParameterLayout& layout, const caffe::SolverParameter& solver,
    Checkpoint start, std::shared_ptr<RecordStore> store,
    std::function<Result<std::unique_ptr<Backend>>()> make_backend = {});

}  // namespace speedo
