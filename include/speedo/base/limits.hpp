#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// Every limit of the program, with its reason. Changing one here changes it everywhere.
namespace speedo {

// Values travel and are checksummed in pieces of this size. 1 to 4 MiB is the measured best for
// Redis: above it, its allocator maps and unmaps every value.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20U;

// Cache line and AVX-512 register: every parameter starts on such a boundary.
inline constexpr std::size_t kArenaAlignmentBytes = 64;

// A blob of more elements than this is refused (Caffe's INT_MAX rule).
inline constexpr std::int64_t kBlobElementsMax = 2147483647;

// Padding and dilation beyond this cannot be meant: 100 is the largest padding in use (FCN). The
// time to make a kernel grows with them.
inline constexpr std::int64_t kWindowReachMax = 65535;

// Elements of a pooling window, as far as it lies on the padded image: 8192 x 8192. Kernels keep
// some bytes for each.
inline constexpr std::int64_t kPoolingWindowMax = std::int64_t{1} << 26U;

// Caffe's limit on the number of axes of a blob.
inline constexpr int kBlobAxesMax = 32;

// Layers of a net: some thousands are the most in use, and the time that plans take grows with the
// square.
inline constexpr int kNetLayersMax = 50000;

// A prototxt longer than this is some other file.
inline constexpr std::size_t kPrototxtBytesMax = std::size_t{64} << 20U;

// Messages within messages in a prototxt: Caffe's deepest nesting is 6.
inline constexpr int kPrototxtDepthMax = 64;

// Protobuf cannot hold or read more in one message.
inline constexpr std::size_t kProtobufBytesMax = 2147483647;

// Control messages between actors stay below this: the I/O thread that sends them also sends the
// heartbeats.
inline constexpr std::size_t kMessageBytesMax = 4096;

// SpeeDO's limit for each of a datumfile record's sizes.
inline constexpr std::uint32_t kDatumfileRecordBytesMax = 104857600;

// Runs in a row whose loss or contribution is not finite before training is given up.
inline constexpr int kNonFiniteRunsMax = 10;

// Batches that are read ahead of the one being computed.
inline constexpr int kPrefetchBatches = 3;

// Threads that decode the records of one data layer: more read faster than a disk gives.
inline constexpr int kDecodeThreadsMax = 16;

inline constexpr int kPortMax = 65535;

// Attempts at one store operation before it is a named error, and the waits between them: 5 s in
// all, and a server that is back serves again within half a second.
inline constexpr int kStoreAttemptsMax = 14;
inline constexpr std::chrono::milliseconds kStoreBackoffFirst{50};
inline constexpr std::chrono::milliseconds kStoreBackoffMax{500};
// A server that lets every attempt run into its time-out is given up after so long.
inline constexpr std::chrono::milliseconds kStoreRetryTime{10000};
// Between two questions which node of a Redis Cluster has which slot: many operations find out at
// once that they have moved.
inline constexpr std::chrono::milliseconds kStoreLearnInterval{100};
inline constexpr std::chrono::milliseconds kStoreConnectTimeout{3000};
inline constexpr std::chrono::milliseconds kStoreCommandTimeout{10000};

// A program that ends waits so long for a server that does not answer.
inline constexpr std::chrono::milliseconds kStoreEndPatience{3000};
// A master whose store is out of reach tries so often whether it is back.
inline constexpr std::chrono::milliseconds kStoreReturnPoll{1000};

// Versions between comparisons of the weights that each worker of replicated updates has with the
// master's: a difference is found within a hundred rounds, and looking costs a thousandth of one.
inline constexpr std::uint64_t kReplicaCheckInterval = 64;

// Bytes of pipelined requests and replies that one connection to the store has under way: enough to
// keep both sides busy, little enough to stay in the caches and in Redis' output buffer.
inline constexpr std::size_t kStoreWindowBytes = std::size_t{4} << 20U;

// Failure detection between actors: CAF's own default is "never".
inline constexpr std::chrono::milliseconds kHeartbeatInterval{1000};
inline constexpr std::chrono::milliseconds kConnectionTimeout{5000};

// How often a worker tells its master that it lives and how far its run is. Half a second keeps the
// detection of a frozen worker within --worker-timeout + 1 s.
inline constexpr std::chrono::milliseconds kBeatInterval{500};

// Mastership of a job: a master that has not renewed its lease for kLeaseTime may be replaced, so a
// new one merges within 5 s of the old one's death.
inline constexpr std::chrono::milliseconds kLeaseTime{2500};
inline constexpr std::chrono::milliseconds kLeaseRenewal{500};

// Ticks further apart than this mean that the process itself slept (SIGSTOP, suspend): nobody else
// is blamed for the silence.
inline constexpr std::chrono::milliseconds kSleptThrough{2000};

// A host whose workers joined and went so many times in a row without finishing a run is kept out:
// for kQuarantineFirst at first, twice as long each time, at most kQuarantineMax.
inline constexpr int kQuarantineAfter = 3;
inline constexpr std::chrono::milliseconds kQuarantineFirst{1000};
inline constexpr std::chrono::milliseconds kQuarantineMax{60000};

// The shards of data of one run, at most: a worker is given more than one only to balance speeds.
inline constexpr std::uint64_t kShardsPerRunMax = 8;

// A model up to this size is published, with everything that a new master needs, at every merge.
inline constexpr std::uint64_t kPublishEachMergeBytesMax = std::uint64_t{50} << 20U;

// How often whoever waits for something that is missing says so.
inline constexpr std::chrono::seconds kWaitingNoteInterval{30};

// A worker that finds no master waits this long, then twice as long, up to the maximum.
inline constexpr std::chrono::milliseconds kReconnectFirst{100};
inline constexpr std::chrono::milliseconds kReconnectMax{5000};
// The maximum for one that has been admitted before: a master that comes back merges within 5 s.
inline constexpr std::chrono::milliseconds kReconnectLost{1000};

// If a Hello is not answered for so long its worker connects again; so often a Ready is repeated,
// until the first order.
inline constexpr std::chrono::milliseconds kAnswerTimeout{5000};

// How often an actor looks at the clock and at what was asked of its process.
inline constexpr std::chrono::milliseconds kTickInterval{100};

// How often a master shows how its job stands to those who watch it.
inline constexpr std::chrono::milliseconds kStatusInterval{1000};

// How often the master looks whether the store still has the job. A worker that does not find it
// there waits twice as long for it to come back.
inline constexpr std::chrono::milliseconds kJobWatchInterval{2000};

// An ending process waits so long for its last messages to arrive.
inline constexpr std::chrono::milliseconds kFarewellTimeout{2000};

}  // namespace speedo
