#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// The bytes of include/speedo/store/layout.hpp.

// Keys of one record.
class RecordKeys {
 public:
  RecordKeys(std::string_view job, std::string_view name);
  std::string manifest() const { return prefix_ + ":m"; }
  std::string blob() const { return prefix_ + ":b"; }
  // `epoch`: of the master that wrote the record, or 0.
  std::string chunk(std::uint64_t epoch, std::uint32_t slot, std::size_t chunk) const;

 private:
  std::string prefix_;
};

// What all keys of a job begin with.
std::string job_prefix(std::string_view job);

struct ChunkHead {
  std::uint64_t version = 0;
  std::uint64_t chunk = 0;
  std::uint64_t checksum = 0;
};
std::string encode_chunk_head(const ChunkHead& head);
std::optional<ChunkHead> decode_chunk_head(std::string_view bytes);  // none: not a chunk

// What a manifest says: a record's description and where its chunks are.
struct RecordManifest {
  RecordInfo info;
  std::uint32_t slot = 0;
  std::vector<std::uint64_t> checksums;  // one a chunk
};
std::string encode_manifest(const RecordManifest& manifest);
// Error: kCorrupt.
Result<RecordManifest> decode_manifest(std::string_view bytes);

std::string encode_blob_head(std::string_view value);
// The value within `bytes`. Error: kCorrupt.
Result<std::string_view> decode_blob(std::string_view bytes);

}  // namespace speedo
