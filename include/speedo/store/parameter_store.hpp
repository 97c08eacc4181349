#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// What a stored float array is; travels in its manifest and is checked on reading.
struct RecordInfo {
  Digest model;                     // fingerprint of the parameter layout
  std::uint64_t version = 0;        // weights: their version. Contributions: the run that made them
  std::uint64_t base_version = 0;   // contributions: version of the weights they were computed from
  std::uint64_t worker = 0;         // contributions: who made them
  std::uint64_t element_count = 0;  // floats in all
  std::uint64_t epoch = 0;          // of the master that wrote it; set by a fenced store
  std::string state;                // travels with it, atomically: the session's state, or nothing
};

// A master's claim on a job. The holder names one process for good: "host pid start-time".
struct MasterClaim {
  std::string holder;
  std::uint64_t epoch = 0;          // 0: a new one, above all before and not below `epoch_floor`
  std::uint64_t epoch_floor = 0;
  std::chrono::milliseconds time{0};  // from now on, unless renewed
  bool force = false;               // although another holder's time is not over
  std::string dead_holder;          // not empty: this holder's time is over, whatever is left of it
};
struct ClaimAnswer {
  bool granted = false;
  std::uint64_t epoch = 0;          // granted: the claim's; else the holder's
  std::string holder;               // not granted: who has it
  std::chrono::milliseconds left{0};  // and for how long
};

inline constexpr std::size_t kChunkElements = kChunkBytes / sizeof(float);

// Chunks of a record of `element_count` floats, whichever 64-bit number that is.
constexpr std::size_t chunk_count(std::uint64_t element_count) {
  return static_cast<std::size_t>(element_count / kChunkElements +
                                  (element_count % kChunkElements == 0 ? 0 : 1));
}

// Writes one record chunk by chunk. Nothing is visible before finish(); dropping the writer without
// it leaves garbage that the next put of the key overwrites, never damage. Thread safety: one
// thread at a time.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  // Queues chunk `chunk` for sending and returns at once. `values` must stay unchanged until
  // finish() returns or the writer is destroyed. Any order; each chunk once.
  virtual void write(std::size_t chunk, std::span<const float> values) = 0;
  // Replaces the state that the record was begun with. Before finish().
  virtual void set_state(std::string state) = 0;
  // Waits for all chunks, then writes the manifest: now readers see the new record. On error
  // readers still see the old one. Errors: kUnavailable, kTimeout, kRefused, kFull (also a state
  // that is too long), kCannotWrite, kSuperseded. Requires: every chunk was written.
  virtual Result<void> finish() = 0;
};

// Brings chunks of a record straight into the caller's memory.
// Thread safety: one thread at a time.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // Queues the reading of a chunk into `target` (its exact size); `target` belongs to the source
  // until wait() of that chunk or destruction. Any order; each chunk once.
  virtual void request(std::size_t chunk, std::span<float> target) = 0;
  // Returns when that chunk is in place and its checksum fits. Errors: kUnavailable, kTimeout;
  // kNotFound if it is not the version's (any more); kCorrupt.
  virtual Result<void> wait(std::size_t chunk) = 0;
  // XXH3 of a chunk's values, which tells whether two sources have read the same. Requires: the
  // manifest was read, or this chunk.
  virtual std::uint64_t checksum(std::size_t chunk) const = 0;
};

// Reads one version of one record. After kNotFound: open again for the newer version.
class RecordReader : public ChunkSource {
 public:
  virtual const RecordInfo& info() const = 0;
};

// A record that is expected, and still being written.
struct AheadRecord {
  std::uint64_t version = 0;        // of its RecordInfo
  std::uint64_t epoch = 0;
  std::uint64_t element_count = 0;
};

// Reads what is there of a record that is still being written. It may never be finished, or be
// written anew: what was read counts if the finished record's reader names the same checksums.
class AheadReader : public ChunkSource {
 public:
  // Asks whether these chunks are there.
  virtual void look(std::span<const std::size_t> chunks) = 0;
  // The answers, in the same order; false also where the store did not answer. Those that are there
  // may be requested.
  virtual std::vector<bool> seen() = 0;
};

// The shared weights and contributions of one job, and its small records. Redis in production,
// memory in tests; store/layout.hpp documents keys and bytes.
//
// Operations retry transient failures (reconnecting with back-off, kStoreAttemptsMax) before they
// return an error, so an error is worth reporting. A failed write leaves the old record readable.
// Keys: letters, digits, '-', '_', '/', '.'.
// Thread safety: all methods may be called from several threads; a writer or reader belongs to one.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  // Large float arrays. One writer per key at a time; readers of the previous version are not
  // disturbed until kRecordSlots newer ones exist or a newer master's first put of the key.
  virtual std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) = 0;
  // Opens the newest complete record. Errors: kNotFound; kCorrupt for a damaged manifest.
  virtual Result<std::unique_ptr<RecordReader>> read(std::string_view key) = 0;
  // The same of several records, asked for at once: one round trip for all.
  virtual std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) = 0;

  // Reads a record that somebody is writing; never waits for it.
  virtual std::unique_ptr<AheadReader> read_ahead(std::string_view key,
                                                  const AheadRecord& record) = 0;

  // Small values (up to a few MiB), whole. Error of get_blob: kNotFound, kCorrupt.
  virtual Result<void> put_blob(std::string_view key, std::string_view value) = 0;
  virtual Result<std::string> get_blob(std::string_view key) = 0;

  // Removes a record and a blob of that name. Not an error: there is none. What an unfinished put
  // of another program left without a manifest goes too, if it has no more than `element_count`
  // floats. Errors: kSuperseded too, see fence().
  virtual Result<void> erase(std::string_view key, std::uint64_t element_count) = 0;
  Result<void> erase(std::string_view key) { return erase(key, 0); }
  // Removes everything of this job, mastership aside. Not atomic: what others write meanwhile may
  // stay. kSuperseded: see fence(); then nothing that the newer master wrote is gone.
  virtual Result<void> clear() = 0;
  // The same of what workers and masters have handed each other, under this and earlier masters.
  virtual Result<void> clear_contributions() = 0;

  // One master at a time. In one atomic step: granted if nobody holds the job, its holder's time is
  // over, the holder is the same, or by force. Claiming again with the epoch that was granted
  // renews.
  // A store that was emptied forgets; the highest epoch that claims or writes again counts.
  // After an error the same claim may be made again. Errors: kSuperseded if a higher epoch than the
  // claim's was granted meanwhile; kCorrupt if something else lies where the epoch should.
  virtual Result<ClaimAnswer> claim_master(const MasterClaim& claim) = 0;
  // Gives it up, if still held. The epoch stays known.
  virtual Result<void> release_master(const MasterClaim& claim) = 0;
  // From here on every record and blob that this object writes is a master's of this epoch: it
  // becomes visible only if no higher epoch was granted, else finish() and put_blob() say
  // kSuperseded, and readers see what the newer master wrote. The same for what it erases. 0 (the
  // start): not a master's.
  virtual void fence(std::uint64_t epoch) = 0;

  // For a program that is about to end: from here on a server that does not answer for
  // kStoreEndPatience is given up for good. What is under way, and all that follows, then ends with
  // kUnavailable or kTimeout, without further attempts. A server that answers is used as before.
  virtual void stop_waiting() = 0;
};

// Writes or reads a whole array, all chunks in flight. get(): the record must have values.size()
// floats and the fingerprint `model`, else kMismatch; opens again when overwritten meanwhile.
Result<void> put(ParameterStore& store, std::string_view key, const RecordInfo& info,
                 std::span<const float> values);
Result<RecordInfo> get(ParameterStore& store, std::string_view key, const Digest& model,
                       std::span<float> values);

// Keys of a job's records.
std::string weights_key();
// A master's epoch is part of it, so that workers of an earlier master write elsewhere.
std::string contribution_key(std::uint64_t epoch, std::uint64_t worker);
std::string checkpoint_key();           // weights, histories: where the weights' record is not all
std::string local_key(std::uint64_t epoch, std::uint64_t worker);  // kElasticMaster: back to it
std::string contribution_key_prefix();  // what those keys begin with; their records expire
std::string job_key();                  // blob: solver and net text, see proto/speedo.proto
std::string probe_key();                // what a master writes now and then, to see that it can
std::string ended_key();                // blob: the job is over, see train/job_end.hpp

}  // namespace speedo
