#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/update.hpp>

namespace speedo {

// Everything a master needs to go on with a job, as of one merge.
struct Checkpoint {
  Version version;
  std::vector<float> weights;                 // layout.element_count() floats
  // Solver histories that the master keeps (gradient only, averaged updaters), each as long as the
  // weights; empty: zero, or none.
  std::vector<std::vector<float>> histories;
  std::string session;                        // MasterSession::save(); empty: a start
  std::string passed_over = {};               // what is wrong with another one, for the log
  // Records in the store that a merger of the whole erases once what it began with is there: what
  // mergers of parts have left.
  std::vector<std::string> replaced = {};
};

// Whether a master of such stages has histories, which a checkpoint must hold.
bool wants_histories(const std::vector<UpdateSpec>& stages);

// The newest whole checkpoint in the store: the published weights if their record has all that
// `wants_histories` asks for, else the checkpoint record, which may be older; the weights alone if
// there is none (whoever wrote them had no histories). A damaged one is passed over if the other
// is whole. Errors: kNotFound if there is none, kMismatch for another net's, kCorrupt (naming the
// record) for damage and for values that are not finite, and those of the store.
Result<Checkpoint> read_checkpoint(RecordStore& store, const ParameterLayout& layout,
                                   bool wants_histories);

}  // namespace speedo
