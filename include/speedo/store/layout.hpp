#pragma once

#include <cstddef>
#include <cstdint>

namespace speedo {

// How a job lies in Redis. Every key of a job has the same hash tag, so that a job can live on one
// node of a Redis Cluster:
//   speedo:{JOB}:NAME:m          manifest of record NAME
//   speedo:{JOB}:NAME:sS:cC      chunk C of the copy in slot S of record NAME
//   speedo:{JOB}:NAME:b          blob NAME
//
// Bytes of each value; numbers are little-endian, checksums 64 bits of XXH3:
//   chunk      "SPEEDOC1"  u64 version  u64 chunk  u64 checksum of the values  float32 values...
//   manifest   "SPEEDOM1"  u64 checksum of the rest  speedo.record.Manifest of proto/speedo.proto
//   blob       "SPEEDOB1"  u64 checksum of the rest  the bytes
//
// A put takes the slot after the one its manifest names, writes the chunks there and the manifest
// last. A chunk that does not carry the version and the checksum its manifest promises was
// overwritten by a newer put: the reader starts again with the newer manifest.

// Copies of the weights that exist at once: a reader of version v is safe until v + kRecordSlots.
inline constexpr std::uint32_t kRecordSlots = 3;
// Contributions have one reader, which is done before the next is written: two copies, so that a
// failed put leaves the old one whole.
inline constexpr std::uint32_t kContributionSlots = 2;
// Contributions are merged within seconds; those of dead workers vanish after this time.
inline constexpr std::uint32_t kContributionExpirySeconds = 3600;

inline constexpr std::size_t kChunkHeadBytes = 32;
inline constexpr std::size_t kFrameHeadBytes = 16;
// A blob or manifest that claims to be longer is damaged.
inline constexpr std::size_t kBlobBytesMax = std::size_t{64} << 20U;

}  // namespace speedo
