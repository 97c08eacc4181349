#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/codec/codec.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/train/update.hpp>

namespace speedo {

// The codec of a worker's contributions, and what it has left out of those that were merged: that
// goes with the next one. A worker's state, from run to run and from one incarnation to the next.
// A run of which it is not known that it was merged leaves it as it was.
// Statistics travel as they are: what is cut or left out of them is wrong at once, and no gradient
// makes up for it.
// Thread safety: one thread at a time.
class TrainerCodec {
 public:
  // Of kThreshold, in multiples of T: what one element may take along into another codec, which
  // would bring at once what T was too small for. Deeplearning4j's bound of all residuals.
  static constexpr float kThresholdsToKeep = 5.0F;

  // Contributions begin with what lies so. Requires: no run is under way.
  void set_layout(const ParameterLayout& layout);

  // From here on contributions are of this kind, of `count` floats. What was left out so far stays
  // if it is of the same kind and the stage may hold any (may_hold_residual(); a worker may have
  // missed stages, or go back), else it is forgotten. Returns the Euclidean norm of what was, and
  // says it in the log. Requires: the last run is settled, or counts as not merged.
  double enter_stage(const UpdateSpec& update, std::size_t count, bool may_hold);
  CodecKind kind() const { return spec_.codec.kind; }

  // A run begins, and the one before was merged if it is `merged_run`.
  void begin_run(std::uint64_t merged_run);
  // That run, if it was the last, was merged: what it left out is left out for good. begin_run()
  // may come later.
  void settle(std::uint64_t merged_run);
  // Codes a chunk of the run's contribution, with what was left out of it before. The bytes stay
  // until the next begin_run(), or this chunk's next encode(). Error: kNotFinite.
  Result<std::span<const std::byte>> encode(std::size_t chunk, std::span<const float> values);
  // Of a chunk that is handed over as it is: adds what was left out of it before.
  void complete(std::size_t chunk, std::span<float> values);
  // Every chunk went through one of the two, and others can see them.
  void committed(std::uint64_t run) { committed_ = run; }

  // What was left out so far: all of it, zeros if nothing was ever left out. Requires: a whole
  // contribution's length, or nothing if none is carried.
  void copy_residual(std::span<float> target) const;
  void take_residual(std::span<const float> residual);
  // What was left out so far, as its Euclidean norm: of contributions that are known to be merged,
  // and as it is if the last one is, too.
  double residual_norm() const;
  double norm_left_at_end() const;

 private:
  std::span<std::byte> bytes_of(std::size_t chunk);
  std::vector<ExactRange> exact_in(std::size_t chunk) const;

  UpdateSpec spec_;
  std::size_t count_ = 0;
  // Of the runs that were merged, and with the run under way. Empty: nothing was ever left out.
  std::vector<float> residual_, next_;
  std::optional<std::uint64_t> committed_;
  std::vector<std::byte> bytes_;
  // Of contributions. `unsteered_`: with parameters that do not learn, and the padding between all.
  std::vector<ExactRange> statistics_, unsteered_;
  std::size_t exact_room_ = 0;  // bytes, of any chunk
  std::vector<float> unsent_;   // of a chunk: what is lost without error feedback
};

}  // namespace speedo
