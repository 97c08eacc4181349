#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>
#include <speedo/store/master_store.hpp>

#include "store/key_value.hpp"

namespace speedo {

// Who may write as master of a job. Two values say it: the highest term that claimed or wrote, and
// the lease, which expires; of a record that several write in turn a third one, the latest of them.
// include/speedo/store/layout.hpp has their bytes. In one atomic step each:
//
//   write       refused ("higher") if the stored term is higher, or ("later") if a later writer of
//               that record is stored, of this term or a higher one; else stores its own, and
//               writes
//   new claim   refused ("held") while another holds the lease, unless that one is said to be dead
//               or by force; refused ("higher", to be proposed anew) if its term is not above the
//               stored one, unless it has that already; else stores term and lease
//   renewal     refused ("higher") if the stored term is higher, or if it is the same and another
//               holds the lease of it; else stores term and lease
//   release     removes the lease, if it is its own
//
// So an emptied store belongs to whichever master with the higher term comes first or later, and
// every step may be repeated. MemoryKeyValue does this under its mutex, Redis in scripts
// (store/redis/master_scripts.hpp).

// How far a term is above one that its master's clock does not pass. The runs of a term are
// numbered from it, so it leaves the one before that many.
inline constexpr std::uint64_t kTermStride = std::uint64_t{1} << 32;

// What is stored of a job's mastership.
struct MasterRecord {
  std::string term;    // empty: none
  std::string writer;  // the latest of the record that is written; empty: none
  std::string lease;   // empty: nobody's
  std::chrono::milliseconds left{0};
};

struct MasterAnswer {
  enum class Kind { kDone, kHeld, kHigher, kCorrupt, kLater };
  Kind kind = Kind::kDone;
  // kHeld, kHigher: what is stored.
  std::uint64_t term = 0;
  std::chrono::milliseconds left{0};
  std::string holder;  // empty: nobody
};

std::string term_key(std::string_view job);
std::string lease_key(std::string_view job);
std::string encode_term(std::uint64_t term);
// Of a record's writer, which that of another master's is compared with too.
std::string encode_writer(const KvMaster& master);
std::string encode_lease(std::uint64_t term, std::string_view holder);

// The rules for writes and claims; a claim or write that is kDone is to be stored.
MasterAnswer judge_write(const KvMaster& master, const MasterRecord& stored);
MasterAnswer judge_claim(const KvMaster& master, const MasterRecord& stored);

// An answer as one line: WORD, then of kHeld and kHigher TERM MILLISECONDS HOLDER.
std::string encode_answer(const MasterAnswer& answer);
// Error: kInternal, not an answer.
Result<MasterAnswer> decode_answer(std::string_view text);
// Of a completed operation: that it was done, and no rule refused it.
bool took_effect(const KvOperation& operation);

// Submits an operation of a master and waits. Errors: kSuperseded, naming the new master ("WHAT of
// job ...") or saying that a later writer has the record; kCorrupt; those of the map.
Result<void> execute_as_master(KeyValue& map, const std::string& job, const std::string& what,
                               const KvPtr& operation);

Result<ClaimAnswer> claim_job(KeyValue& map, const std::string& job, const MasterClaim& claim);
Result<void> release_job(KeyValue& map, const std::string& job, const MasterClaim& claim);

}  // namespace speedo
