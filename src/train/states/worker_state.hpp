#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/update.hpp>

#include "speedo.pb.h"

namespace speedo {

// What a worker has alone at a moment when no run of it is under way, and its last one that was
// merged is behind it. In the store it is a record whose values are the numbers and whose state is
// the head; the record's version is the snapshot's iteration. In a file:
//
//   8 bytes  "SPEEDOW1"
//   8 bytes  XXH3 of what follows, little-endian
//   8 bytes  bytes of the head, little-endian
//   the head record.StateOfWorker (proto/speedo.proto)
//   the rest the numbers, little-endian float32: weights, histories, residual
struct StateOfWorker {
  record::WorkerState head;
  std::vector<float> values;

  std::span<float> weights() { return part(0, head.weights()); }
  std::span<float> histories() { return part(head.weights(), head.histories()); }
  std::span<float> residual() {
    return part(head.weights() + head.histories(), head.residual());
  }

 private:
  std::span<float> part(std::uint64_t offset, std::uint64_t count) {
    return std::span(values).subspan(static_cast<std::size_t>(offset),
                                     static_cast<std::size_t>(count));
  }
};

// Its solver's histories are its own from run to run.
bool keeps_own_histories(const UpdateSpec& spec);

// Whether a worker's histories in this stage are ones that it goes on with: in this stage, or in
// one after it that finds them as they are now. They are in its state.
bool may_hold_histories(const std::vector<UpdateSpec>& stages, std::size_t stage);

// Whether something that a codec left out may be waiting in this stage: its own leaves it, or one
// before it did, with which it contributes the same.
bool may_hold_residual(const std::vector<UpdateSpec>& stages, std::size_t stage);

// Arrays of the model's size in a state, at most: two histories, and a codec's residual of weights
// and two histories.
inline constexpr std::uint64_t kStateArraysMax = 5;

// Keys of its record: as a worker of a master of this term puts it there, and as a later master
// puts it where a worker finds it.
std::string state_key(std::uint64_t term, std::uint64_t worker);
std::string seat_key(std::uint64_t term, std::uint64_t seat);

// Errors: those of put() and get(); get_state() also kCorrupt for a head that does not fit, for
// numbers that are not finite, and for more of them than kStateArraysMax arrays of `arena` floats,
// of which nothing is read; kMismatch for another net's.
Result<void> put_state(RecordStore& store, const std::string& key, const StateOfWorker& state);
Result<StateOfWorker> get_state(RecordStore& store, const std::string& key, const Digest& model,
                                std::uint64_t arena);

std::string to_file_bytes(const StateOfWorker& state);
// Error: kCorrupt, saying what is wrong with it. `name`: the file, for that.
Result<StateOfWorker> parse_state_file(std::string_view bytes, const std::string& name);

// Whether one can take the place of the other.
bool are_alike(const record::WorkerState& a, const record::WorkerState& b);

// The mean of states that are alike, number by number; of residuals the sum, if they add up. One
// alone stays as it is. Requires: at least one, and all alike.
StateOfWorker mean_of(std::vector<StateOfWorker> states, bool adds_residuals);

// Which of `states` lie at seat `seat` of `seats`: seat, seat + seats, ... An even deal; with as
// many seats as states each has its own.
std::vector<std::size_t> states_at(std::size_t seat, std::size_t seats, std::size_t states);

}  // namespace speedo
