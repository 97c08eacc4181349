#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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
};

inline constexpr std::size_t kChunkElements = kChunkBytes / sizeof(float);

// Chunks of a record of `element_count` floats, and the elements of chunk `chunk`.
constexpr std::size_t chunk_count(std::uint64_t element_count) {
  return static_cast<std::size_t>((element_count + kChunkElements - 1) / kChunkElements);
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
  // Waits for all chunks, then writes the manifest: now readers see the new record. On error
  // readers still see the old one. Errors: kUnavailable, kTimeout, kRefused, kFull, kCannotWrite.
  // Requires: every chunk was written.
  virtual Result<void> finish() = 0;
};

// Reads one version of one record chunk by chunk, straight into the caller's memory.
// Thread safety: one thread at a time.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  virtual const RecordInfo& info() const = 0;
  // Queues the reading of a chunk into `target` (its exact size); `target` belongs to the reader
  // until wait() of that chunk or destruction. Any order; each chunk once.
  virtual void request(std::size_t chunk, std::span<float> target) = 0;
  // Returns when that chunk is in place and its checksum fits. Errors: kUnavailable, kTimeout;
  // kNotFound if the version was overwritten meanwhile (open again for the newer one); kCorrupt.
  virtual Result<void> wait(std::size_t chunk) = 0;
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
  // disturbed until kRecordSlots newer ones exist.
  virtual std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) = 0;
  // Opens the newest complete record. Errors: kNotFound; kCorrupt for a damaged manifest.
  virtual Result<std::unique_ptr<RecordReader>> read(std::string_view key) = 0;

  // Small values (up to a few MiB), whole. Error of get_blob: kNotFound, kCorrupt.
  virtual Result<void> put_blob(std::string_view key, std::string_view value) = 0;
  virtual Result<std::string> get_blob(std::string_view key) = 0;

  // Removes a record and a blob of that name. Not an error: there is none.
  virtual Result<void> erase(std::string_view key) = 0;
  // Removes everything of this job.
  virtual Result<void> clear() = 0;
};

// Writes or reads a whole array, all chunks in flight. get(): the record must have values.size()
// floats and the fingerprint `model`, else kMismatch; opens again when overwritten meanwhile.
Result<void> put(ParameterStore& store, std::string_view key, const RecordInfo& info,
                 std::span<const float> values);
Result<RecordInfo> get(ParameterStore& store, std::string_view key, const Digest& model,
                       std::span<float> values);

// Keys of a job's records.
std::string weights_key();
std::string contribution_key(std::uint64_t worker);
std::string contribution_key_prefix();  // what those keys begin with; their records expire
std::string job_key();                  // blob: solver and net text, see proto/speedo.proto

}  // namespace speedo
