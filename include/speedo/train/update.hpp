#pragma once

#include <cstdint>
#include <optional>

#include <speedo/codec/codec.hpp>

namespace speedo {

// What a worker contributes and what the master does with it. W: the master's weights.
enum class UpdateKind {
  kFullDelta,      // the change of the weights by the worker's solver; W += delta / factor
  kGradientOnly,   // the raw gradient of one iteration; W goes through the solver's rule
  kElastic,        // EASGD (Zhang, Choromanska, LeCun 2015): the worker trains its own weights x,
                   // contributes e = a (x - W), W += e; x -= e once e is merged
  kElasticMaster,  // the same as SpeeDO did it: the worker contributes x, the master forms e from
                   // the newest W, W += e, and writes x - e back for the worker: twice the bytes
};

// What becomes of the solver history (momentum) that full deltas leave on the workers.
enum class UpdaterState {
  kKeep,     // each worker keeps its own
  kAverage,  // averaged like weights (Deeplearning4j's saveUpdater): a record of the weights or a
             // contribution then holds the weights and behind them every history
  kReset,    // zero at the start of each run (saveUpdater false)
};

// What workers compute and the master merges: one stage of a job. The axis *what*; the strategy is
// *when*, MasterConfig's staleness weighting *how much*.
struct UpdateSpec {
  UpdateKind kind = UpdateKind::kFullDelta;
  // Mini-batches a run trains (--train): EASGD's communication period, averaging's k.
  std::uint32_t steps_per_run = 1;
  float moving_rate = 0.0F;  // a of the elastic kinds, in [0, 1]
  UpdaterState updater = UpdaterState::kKeep;
  float factor = 1.0F;       // full deltas are divided by it
  float skip = 0.0F;         // full deltas: elements, of a mean its own, smaller in magnitude are
                             // not added
  // Of contributions that travel through the store; those that lie in shared memory are exact.
  CodecSpec codec = {};
  bool error_feedback = true;  // else what the codec leaves out is lost
  // kGradientOnly in rounds: workers apply the mean themselves, each to weights of its own, and
  // read only that; gradients that are cheaper so travel as factors, if `factors`.
  bool replicated = false, factors = true;
  // Of a strategy that trains in rounds: nothing is merged before all who train have reported, so
  // the weights stay while a run is under way. See updates_of().
  bool in_rounds = false;
  // Instead of the solver's, while this stage lasts.
  std::optional<float> base_lr = std::nullopt, momentum = std::nullopt;
  std::optional<float> weight_decay = std::nullopt;
  bool operator==(const UpdateSpec&) const = default;
};

constexpr bool is_elastic(UpdateKind kind) {
  return kind == UpdateKind::kElastic || kind == UpdateKind::kElasticMaster;
}

// Records of the weights, and contributions, hold the histories too.
constexpr bool averages_histories(const UpdateSpec& update) {
  return update.kind == UpdateKind::kFullDelta && update.updater == UpdaterState::kAverage;
}

// What a codec has left out of an elastic step stays in the worker's weights: it takes the half of
// the step that was sent. Of all others it is added to the next contribution.
constexpr bool carries_residual(const UpdateSpec& update) {
  return update.codec.kind != CodecKind::kNone && update.error_feedback &&
         !is_elastic(update.kind);
}

// The master has histories of its own.
constexpr bool keeps_histories(const UpdateSpec& update) {
  return update.kind == UpdateKind::kGradientOnly || averages_histories(update);
}

}  // namespace speedo
