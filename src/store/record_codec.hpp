#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// The bytes of include/speedo/store/layout.hpp.

// Keys of one record.
class RecordKeys {
 public:
  RecordKeys(std::string_view job, std::string_view name);
  std::string manifest() const { return prefix_ + ":m"; }
  std::string blob() const { return prefix_ + ":b"; }
  std::string writer() const { return prefix_ + ":w"; }
  // `term`: of the master that wrote the record, or 0.
  std::string chunk(std::uint64_t term, std::uint32_t slot, std::size_t chunk) const;

 private:
  std::string prefix_;
};

// What all keys of all jobs begin with; and of one job, its mastership's aside.
inline constexpr std::string_view kJobKeyStart = "speedo:{";
std::string job_prefix(std::string_view job);
// The job that a key beginning so belongs to, on whichever server; "" for another key.
std::string job_of_record_key(std::string_view key);

// A chunk by its key.
struct ChunkName {
  std::string record;
  std::uint64_t term = 0;
};
// None: `key` is not one of this job's, of a chunk that a master wrote.
std::optional<ChunkName> fenced_chunk(std::string_view job, std::string_view key);

struct ChunkHead {
  std::uint64_t version = 0;
  std::uint64_t chunk = 0;
  CodecKind codec = CodecKind::kNone;
  std::uint64_t checksum = 0;
};
std::string encode_chunk_head(const ChunkHead& head);
// None: not a chunk, or of a codec that this program does not know.
std::optional<ChunkHead> decode_chunk_head(std::string_view bytes);

// What a manifest says: a record's description, and where its chunks are and how large.
struct ManifestChunk {
  std::uint64_t checksum = 0;
  std::uint32_t bytes = 0;   // of its values, as encoded
  std::uint32_t server = 0;  // that holds it
  bool operator==(const ManifestChunk&) const = default;
};
struct RecordManifest {
  RecordInfo info;
  std::uint32_t slot = 0;
  std::uint32_t servers = 1;
  std::vector<std::uint32_t> slots = {};  // by server, if they have one each
  std::vector<ManifestChunk> chunks;
  // Whether a writer of that term has put it whose own slots begin there.
  bool is_of(std::uint64_t term, std::uint32_t first_slot) const {
    return info.term == term && slot >= first_slot && slot - first_slot < kRecordSlots;
  }
  std::uint32_t slot_of(std::size_t chunk) const {
    return slots.empty() ? slot : slots[chunk % servers];
  }
};
std::string encode_manifest(const RecordManifest& manifest);
// Errors: kCorrupt, also if the chunks have not the sizes that the values take; kMismatch, saying
// what to do, for another layout or codec.
Result<RecordManifest> decode_manifest(std::string_view bytes);

std::string encode_blob_head(std::string_view value);
// The value within `bytes`. Error: kCorrupt.
Result<std::string_view> decode_blob(std::string_view bytes);

}  // namespace speedo
