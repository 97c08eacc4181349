#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/clock.hpp>

#include "sim/proof_store.hpp"
#include "sim/check/violations.hpp"
#include "store/record_codec.hpp"

namespace speedo::sim {

// What must hold of records in the store, whoever writes them: readers find them whole from the
// moment they can find them, of the weights as long as they can, with the copies that parts have,
// and those of workers that are gone are erased.
class RecordChecker {
 public:
  // `clock`: the server's.
  RecordChecker(KeyValue& map, std::string job, const Clock& clock, Violations& violations)
      : map_(map), job_(std::move(job)), clock_(clock), violations_(violations) {}

  // The weights are merged in parts, each with copies on the server after its own.
  void expect_copies() { expects_copies_ = true; }
  // An operation that was executed.
  void done(const KvOperation& operation);
  // Chunks may be gone that are named by manifests yet to come, and what was erased is back. Of the
  // first server, another manifest of the weights may be there than the newest.
  void store_lost_data(std::size_t server = 0);
  bool may_have_lost_data() const;
  // Whether all is there that a manifest names which is there.
  bool is_whole(const std::string& manifest_key) const;
  // A master has told to erase what this worker has put; it had time enough once erased() is asked.
  void told_to_erase(std::uint64_t term, std::uint64_t worker) { gone_.insert({term, worker}); }
  void check_erased(std::uint64_t term, std::uint64_t worker);
  // Its worker has erased this contribution, and puts it no more.
  void withdrawn(std::string_view contribution);
  // The last master is gone, and its workers.
  void check_end();
  // It erases what workers have put, its own and those of masters before.
  void master_ends(std::uint64_t term);
  void granted(std::uint64_t term) { newest_term_ = std::max(newest_term_, term); }

 private:
  KvPtr read(const std::string& key) const;
  RecordKeys names_of(const std::string& manifest_key) const;
  // What a manifest promises of a chunk.
  struct Promise {
    std::uint64_t version = 0, checksum = 0;
  };
  using Promises = std::map<std::string, Promise>;  // by the chunks' keys
  Promises promises_of(const std::string& manifest_key) const;
  Promises copies_of_weights() const;
  void take_newest_weights();
  bool is_kept(const std::string& key, const Promise& promise) const;
  void look_at_named(const KvOperation& operation);
  using Owner = std::pair<std::uint64_t, std::uint64_t>;  // term, worker
  std::optional<Owner> owner_of(const std::string& key) const;
  std::vector<std::string> handed_over() const;

  KeyValue& map_;
  const std::string job_;
  const Clock& clock_;
  Violations& violations_;
  std::optional<Instant> lost_data_at_, lost_manifests_at_;
  std::set<Owner> gone_, late_;  // late: put after that, or back
  std::set<std::uint64_t> ended_terms_;
  std::set<Owner> after_end_;  // have put since the newest master began to end
  Promises named_, copies_;  // by the newest manifest of the weights
  bool expects_copies_ = false;
  std::uint64_t newest_term_ = 0;
};

}  // namespace speedo::sim
