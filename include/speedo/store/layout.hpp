#pragma once

#include <cstddef>
#include <cstdint>

namespace speedo {

// How a job lies in Redis. Every key of a job on one server has the same hash tag:
//   speedo:{JOB}:NAME:m          manifest of record NAME
//   speedo:{JOB}:NAME:sS:cC      chunk C of the copy in slot S of record NAME
//   speedo:{JOB}:NAME:tT:sS:cC   the same of a record that a master of term T wrote
//   speedo:{JOB}:NAME:w          who has put record NAME last, of several that put it in turn
//   speedo:{JOB}:NAME:b          blob NAME
//   speedo:{JOB}/term           the highest term of a master that claimed or wrote
//   speedo:{JOB}/lease           who is master, until the key expires
// NAME of what a worker of a master of term T writes begins with "worker/T/", of what that master
// hands its workers with "master/T/".
// All but the last two begin with "speedo:{JOB}:": what clears a job leaves its mastership alone.
//
// A job on S > 1 servers has chunk C of each record on server C mod S, the other keys on server 0;
// but records NAME = part/K/... lie wholly on server K.
// On server K > 0 the tag is {JOB:K}, and "speedo:{JOB:K}/term" the highest term of a master that
// wrote there.
//
// On a Redis Cluster a job has kClusterParts such parts, as if each were a server; the tag of part
// K > 0 is {JOB:N}, with N so that the parts' slots are equally far apart
// (store/redis/key_slot.hpp).
//
// Bytes of each value; numbers are little-endian, checksums 64 bits of XXH3:
//   chunk      "SPEEDOC1"  u64 version  u32 chunk  u32 codec, 0 standing for 1
//              u64 checksum of what follows  encoded values
//   manifest   "SPEEDOM2"  u64 checksum of the rest  speedo.record.Manifest of proto/speedo.proto
//   blob       "SPEEDOB1"  u64 checksum of the rest  the bytes
//   term      20 decimal digits, so that texts compare as numbers do
//   writer    20 digits of its master's term, 20 of its first slot
//   lease      20 digits of the holder's term, a space, the holder's name
//
// A manifest names the codec of the record's values (CodecKind of codec/codec.hpp), and of each
// chunk its checksum, the bytes of its encoded values, and which of the store's servers holds it;
// and how many servers that store had: with another number the record cannot be read (kMismatch).
// The digit of "SPEEDOM2" is the layout's number. A record of layout 1 ("SPEEDOM1": no codec, no
// sizes) or of an unknown codec is neither read nor replaced (kMismatch); whoever clears the job
// removes it.
//
// A put takes the slot after the one its manifest names, writes the chunks there and the manifest
// last. A chunk that does not carry the version and the checksum its manifest promises was
// overwritten by a newer put: the reader starts again with the newer manifest.
//
// Where mergers beside the servers write the weights, each has the chunks of its server in slots of
// its own, three for each merger that there was, above those that whole puts use; the manifest then
// names a slot for each server. A copy of chunk C on server K = C mod S lies as chunk C of record
// part/L/of-K/weights on server L = K + 1 mod S, in the same slot, or in slot 0 if one program has
// put the whole. No manifest is its own: that of the weights names both.
//
// A step of replicated updates that is made in parts has each server's chunks in slot V mod 2 of
// the version V, whichever merger of the part writes them: the manifest's checksums say what
// counts.
//
// A part's mergers put its checkpoint record and the copy of it one after another, each in slots of
// its own, as of the weights; the scripts that write the manifest or erase the record refuse one
// that a later merger has taken over from.
//
// A master's manifest or blob is written by a script that compares its term with the stored one in
// the same step: a higher one refuses the write, a lower or absent one is replaced. Chunks need no
// condition, since no other master's manifest names chunks of this term. The first put of a newer
// master removes those that it replaced.

// Servers that the chunks of a record may lie on, at most.
inline constexpr std::uint32_t kRecordServersMax = 256;
// Parts that a job has on a Redis Cluster, whatever primaries that has: so slots may move, and
// primaries come and go, and no key changes its name.
inline constexpr std::uint32_t kClusterParts = 16;

// Copies of the weights that exist at once: a reader of version v is safe until v + kRecordSlots.
inline constexpr std::uint32_t kRecordSlots = 3;
// Contributions have one reader, which is done before the next is written: two copies, so that a
// failed put leaves the old one whole.
inline constexpr std::uint32_t kContributionSlots = 2;
// What workers and master hand each other is counted on for as long as a run, a round or a pause
// of the whole job may last, and the server's clock goes on while all of them sleep. So whoever
// knows that nobody will read it erases it: a worker what it has put of a run that was given up, a
// master what workers that are gone have left, and at its end all of it. What an abandoned job
// leaves vanishes after this time, and what a killed worker had on its way when its job ended.
inline constexpr std::uint32_t kContributionExpirySeconds = 7 * 24 * 3600;

inline constexpr std::size_t kChunkHeadBytes = 32;
inline constexpr std::size_t kFrameHeadBytes = 16;
// A manifest is read whole before each record: a longer state belongs into a record of its own.
inline constexpr std::size_t kStateBytesMax = std::size_t{16} << 20U;
// A blob or manifest that claims to be longer is damaged.
inline constexpr std::size_t kBlobBytesMax = std::size_t{64} << 20U;

}  // namespace speedo
