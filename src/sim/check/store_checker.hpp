#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/check/record_checker.hpp"
#include "sim/check/violations.hpp"
#include "sim/proof_store.hpp"

namespace speedo::sim {

// What must hold of the published weights as readers of the store see them, after every operation
// that the server executes.
class StoreChecker {
 public:
  StoreChecker(KeyValue& map, const RecordChecker& records, const std::string& job,
               std::uint64_t publish_interval, Violations& violations);

  void granted(std::uint64_t term);
  // With or without its data; of the weights there are all parts, on their servers or as copies.
  void restarted(bool has_weights = true);
  void done(const KvOperation& operation);
  // A master says that it has published this version. `may_be_lost`: the store may have another.
  void published(std::uint64_t term, std::uint64_t version, bool may_be_lost);
  // An operation was done, and its answer lost: a master that has published a version without
  // knowing it puts the one before back.
  void unanswered(const KvOperation& operation);
  // Whether the store has a version of this term that its master does not know to be there.
  bool has_untold(std::uint64_t term) const;

 private:
  struct Seen {
    std::uint64_t term = 0, version = 0, iteration = 0;
  };
  bool are_readable();  // the weights
  // Of the record whose manifest this is; nothing if it is not there, or damaged.
  std::optional<Seen> read(const std::string& manifest_key);
  void judge(const Seen& now);
  bool keeps_up(std::uint64_t iteration, std::uint64_t reached) const;
  KeyValue& map_;
  const RecordChecker& records_;
  const std::string weights_manifest_, checkpoint_manifest_;
  const std::uint64_t publish_interval_;
  Violations& violations_;
  Seen last_;
  // It was whole at some time, or its master has said that it is there. Else nobody has seen it:
  // its manifest came after the store had lost its chunks, and they could not be put again.
  bool is_known() const { return was_whole_ || is_told_; }
  bool was_whole_ = true;
  bool is_told_ = false;
  // After the store went back in time, until its checkpoint is of now: the iteration of the one of
  // then. Weights alone are newer, but a master that needs histories begins there.
  std::optional<std::uint64_t> went_back_to_;
  std::uint64_t granted_ = 0;  // the highest term that the store knows
  std::uint64_t newest_ = 0;   // the highest ever granted
  // The term of the last master that may not know its newest version.
  std::optional<std::uint64_t> unsure_;
  std::uint64_t told_term_ = 0, told_version_ = 0;  // what a master said last
};

}  // namespace speedo::sim
