#pragma once

#include <atomic>
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
#include <speedo/codec/codec.hpp>

namespace speedo {

// What a stored float array is; travels in its manifest and is checked on reading.
struct RecordInfo {
  Digest model;                     // fingerprint of the parameter layout
  std::uint64_t version = 0;        // weights: their version. Contributions: the run that made them
  std::uint64_t base_version = 0;   // contributions: version of the weights they were computed from
  std::uint64_t worker = 0;         // contributions: who made them
  std::uint64_t element_count = 0;  // floats in all
  std::uint64_t term = 0;          // of the master that wrote it; set by a fenced store
  CodecKind codec = CodecKind::kNone;  // that its values are written in
  std::string state;                // travels with it, atomically: the session's state, or nothing
};

inline constexpr std::size_t kChunkElements = kChunkBytes / sizeof(float);

// Floats of each chunk of a record but its last: kChunkElements, or what this thread's ShortChunks
// say.
std::size_t chunk_length();

// While it lives, its thread cuts records into short chunks: few floats then have many, as large
// models do. Every thread of a job has to have the same; a record that was cut otherwise is refused
// (kCorrupt). They nest. Thread safety: one thread, which makes and destroys it.
class ShortChunks {
 public:
  // Requires: whole cache lines (a multiple of 16), kChunkElements at most.
  explicit ShortChunks(std::size_t elements);
  ~ShortChunks();
  ShortChunks(const ShortChunks&) = delete;
  ShortChunks& operator=(const ShortChunks&) = delete;

 private:
  const std::size_t before_;
};

// Chunks of a record of `element_count` floats, whichever 64-bit number that is.
inline std::size_t chunk_count(std::uint64_t element_count) {
  const std::size_t length = chunk_length();
  return static_cast<std::size_t>(element_count / length + (element_count % length == 0 ? 0 : 1));
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
  // Whether chunks are to be given as info.codec makes them, to write_encoded() instead. False also
  // where their bytes go nowhere.
  virtual bool is_coded() const { return false; }
  // The same; readers see what decode() makes of `bytes`. Requires: is_coded().
  virtual void write_encoded(std::size_t chunk, std::span<const std::byte> bytes);
  // `progress`, which outlives the writer, is counted up whenever some of the chunks that are
  // written from here on goes out to a server: a slow link can be told from one that stands still.
  virtual void watch(std::atomic<std::uint64_t>& /*progress*/) {}
  // Replaces the state that the record was begun with. Before finish().
  virtual void set_state(std::string state) = 0;
  // Whether finish() would not have to wait for chunks. Requires: every chunk was written.
  virtual bool is_sent() const { return true; }
  // Waits for all chunks, then writes the manifest: now readers see the new record. On error
  // readers still see the old one. Errors: kUnavailable, kTimeout, kRefused, kFull (also a state
  // that is too long), kCannotWrite, kSuperseded, kMismatch (the old one is of another layout or
  // codec: it stays). Requires: every chunk was written.
  virtual Result<void> finish() = 0;
};

// Brings chunks of a record straight into the caller's memory.
// Thread safety: one thread at a time.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // `progress`, which outlives the source, is counted up whenever some of what is requested from
  // here on comes from a server.
  virtual void watch(std::atomic<std::uint64_t>& /*progress*/) {}
  // Queues the reading of a chunk into `target` (its exact size), decoded; `target` belongs to the
  // source until wait() of that chunk or destruction. Any order; each chunk once.
  virtual void request(std::size_t chunk, std::span<float> target) = 0;
  // Whether wait() of a chunk that was requested returns at once.
  virtual bool is_done(std::size_t chunk) const = 0;
  // Returns when that chunk is in place and its checksum fits. Errors: kUnavailable, kTimeout;
  // kNotFound if it is not the version's (any more); kCorrupt.
  virtual Result<void> wait(std::size_t chunk) = 0;
  // Tells whether two sources of one store have read the same: XXH3 of a chunk's values as they
  // are written, or what else is another one for others. Requires: the manifest was read, or this
  // chunk.
  virtual std::uint64_t checksum(std::size_t chunk) const = 0;

  // A chunk as it lies in memory that is shared with its writer: needs no request() and wait(), but
  // counts only if confirm() succeeds once it was read. Empty: it has to be requested.
  virtual std::span<const float> in_place(std::size_t /*chunk*/) { return {}; }
  // kNotFound if it is not the version's any more.
  virtual Result<void> confirm(std::size_t /*chunk*/) { return {}; }
};

// Reads one version of one record. After kNotFound: open again for the newer version.
class RecordReader : public ChunkSource {
 public:
  virtual const RecordInfo& info() const = 0;
  // False if chunks of it are gone or replaced: a server came back without its data, or others
  // wrote there. Errors: those of the store.
  virtual Result<bool> is_whole() { return true; }
};

// A record that is expected, and still being written.
struct AheadRecord {
  std::uint64_t version = 0;        // of its RecordInfo
  std::uint64_t term = 0;
  std::uint64_t element_count = 0;
};

// Reads what is there of a record that is still being written. It may never be finished, or be
// written anew: what was read counts if the finished record's reader names the same checksums.
class AheadReader : public ChunkSource {
 public:
  // Asks whether these chunks are there.
  virtual void look(std::span<const std::size_t> chunks) = 0;
  // Whether seen() would not wait.
  virtual bool is_answered() const { return true; }
  // The answers, in the same order; false also where the store did not answer. Those that are there
  // may be requested.
  virtual std::vector<bool> seen() = 0;
};

// Large float arrays of one job: weights, contributions, checkpoints. Each key has one writer at a
// time; readers of the previous version are not disturbed until kRecordSlots newer ones exist or a
// newer master's first put of the key. Errors, keys and thread safety as of the ParameterStore that
// this is part of.
class RecordStore {
 public:
  virtual ~RecordStore() = default;

  virtual std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) = 0;
  // Opens the newest complete record. Errors: kNotFound; kCorrupt for a damaged manifest; kMismatch
  // for a record of another layout or codec than this program's, saying what to do.
  virtual Result<std::unique_ptr<RecordReader>> read(std::string_view key) = 0;
  // The same of several records, asked for at once: one round trip for all.
  virtual std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) = 0;
  // Reads a record that somebody is writing; never waits for it.
  virtual std::unique_ptr<AheadReader> read_ahead(std::string_view key,
                                                  const AheadRecord& record) = 0;
  // Removes a record. Not an error: there is none. What an unfinished put of another program left
  // without a manifest goes too, if it has no more than `element_count` floats. Errors:
  // kSuperseded too, see ParameterStore::fence().
  virtual Result<void> erase(std::string_view key, std::uint64_t element_count) = 0;
  Result<void> erase(std::string_view key) { return erase(key, 0); }
  // Removes what workers and masters have handed each other, under this and earlier masters. Not
  // atomic, and kSuperseded, as ParameterStore::clear().
  virtual Result<void> clear_contributions() = 0;
};

// Writes or reads a whole array, all chunks in flight. get(): the record must have values.size()
// floats and the fingerprint `model`, else kMismatch; opens again when overwritten meanwhile.
Result<void> put(RecordStore& store, std::string_view key, const RecordInfo& info,
                 std::span<const float> values);
Result<RecordInfo> get(RecordStore& store, std::string_view key, const Digest& model,
                       std::span<float> values);

// Keys of a job's records.
std::string weights_key();
std::string checkpoint_key();  // weights, histories: where the weights' record is not all
// What workers and masters hand each other: those records expire. A master's term is part of each
// key, so that workers of an earlier master write elsewhere. A worker's user of Redis may write
// what begins with the first prefix, and of the second's nothing.
std::string contribution_key_prefix();
std::string handout_key_prefix();
bool is_handed_over(std::string_view key);
std::string contribution_key(std::uint64_t term, std::uint64_t worker);
std::string local_key(std::uint64_t term, std::uint64_t worker);  // kElasticMaster: back to it

}  // namespace speedo
