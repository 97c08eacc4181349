#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>
#include <speedo/train/phase_times.hpp>
#include <speedo/train/read_faults.hpp>

// Everything that master and worker say to each other, as plain data. Never weights, never
// floating-point fields (CAF 0.17.6 damages them): losses travel as bit patterns.
// Each message encodes to less than kMessageBytesMax; senders truncate texts to kTextMax.
namespace speedo {

inline constexpr std::uint32_t kProtocolVersion = 16;

inline constexpr std::uint64_t kNoRun = UINT64_MAX;
inline constexpr std::uint64_t kNoVersion = UINT64_MAX;
inline constexpr std::uint64_t kNoSeat = UINT64_MAX;

// The device of workers that only take the time of computing
// (src/train/trainer/emulated_learner.hpp).
inline constexpr const char* kEmulatedDevice = "emulated";

// The device of mergers of a part of the weights, which train nothing: with ":K" behind it of part
// K, counted from 1, else of any that has none.
inline constexpr const char* kPartDevice = "shard";

// A message has at most three texts and 24 numbers; what is left is for framing.
inline constexpr std::size_t kTextMax = 1024;
static_assert(3 * kTextMax + 24 * sizeof(std::uint64_t) + 512 <= kMessageBytesMax);

// `text` as one line: cut to kTextMax bytes at the end of a UTF-8 character, the cut marked by
// "...", control characters replaced by spaces.
std::string clip_text(std::string_view text);

// The code of a RefusedMessage or LeaveMessage; a number that is none of ours is kInternal.
ErrorCode error_code_of(std::uint32_t code);

// worker -> master, first.
struct HelloMessage {
  std::uint32_t protocol = kProtocolVersion;
  std::string name;      // "host/pid/k", for people
  // "cpu", "gpu:0 NVIDIA H200, tf32", kEmulatedDevice, kPartDevice
  std::string device;
  std::uint64_t uuid_high = 0, uuid_low = 0;  // of this worker, as long as its process lives
  auto fields() { return std::tie(protocol, name, device, uuid_high, uuid_low); }
};

// master -> worker: admitted; the job lies in the store, which the worker opens with credentials of
// its own.
struct WelcomeMessage {
  std::uint64_t worker = 0;
  std::string store;             // a StoreAddress: host:port, redis://host:port/db, unix:///path
  std::string job;               // the job's key space
  std::uint64_t model_high = 0, model_low = 0;  // fingerprint the worker's net must have
  std::uint64_t term = 0;       // of the master; part of the worker's contribution key
  std::string memory = {};      // where workers of its machine share memory with it; "": nowhere
  std::uint64_t part = 0;       // kPartDevice: which one, counted from 1
  // A connection on which the master is silent for so long is given up; 0: never.
  std::uint64_t silence_ms = 0;
  auto fields() {
    return std::tie(worker, store, job, model_high, model_low, term, memory, part, silence_ms);
  }
};

// master -> worker: not admitted, or put out. `code` is an ErrorCode. The worker ends with the
// matching exit code; it does not try again unless the code is transient.
struct RefusedMessage {
  std::uint32_t code = 0;
  std::string reason;
  auto fields() { return std::tie(code, reason); }
};

// worker -> master: net built, weights can be read, work wanted.
struct ReadyMessage {
  std::uint64_t worker = 0;
  std::uint64_t model_high = 0, model_low = 0;
  auto fields() { return std::tie(worker, model_high, model_low); }
};

// master -> worker: one run.
struct TrainMessage {
  std::uint64_t run = 0;
  std::uint64_t iteration = 0;      // merged count + start iteration: the learning rate follows it
  std::uint64_t version = 0;        // read at least this version of the weights
  // The master's numbers of this run's first shard and of the worker's next one: for those who
  // check its orders.
  std::uint64_t shard = 0, next_shard = 0;
  std::uint64_t shards = 1;  // from `shard` on: the batch is so many times as large
  // Where the two begin in the data stream, counted in steps; the second to read ahead.
  std::uint64_t first_step = 0, next_step = 0;
  std::uint32_t stage = 0;          // of the job: which UpdateSpec
  std::uint32_t lr_scale_bits = 0x3F800000;  // bit pattern of a float, 1.0: factor on the rate
  // This worker's last run if its contribution was merged, else kNoRun: an elastic worker takes its
  // half of the step then, and only then, times the weight it was merged with (a float's bits).
  std::uint64_t merged_run = kNoRun;
  std::uint32_t merged_weight_bits = 0x3F800000;
  // Of the worker's first run, if a snapshot has a state for it: the seat that it lies at, see
  // src/train/states. Else kNoSeat.
  std::uint64_t seat = kNoSeat;
  auto fields() {
    return std::tie(run, iteration, version, shard, next_shard, shards, first_step, next_step,
                    stage, lr_scale_bits, merged_run, merged_weight_bits, seat);
  }
};

// master -> worker: put into the store what is yours alone, for the snapshot of this iteration, as
// soon as no run is under way. The worker's last run that was merged by then, as in TrainMessage.
struct SaveStateMessage {
  std::uint64_t worker = 0;
  std::uint64_t iteration = 0;
  std::uint64_t merged_run = kNoRun;
  std::uint32_t merged_weight_bits = 0x3F800000;
  // Its last run if the snapshot is without that, and has its data as still to be trained: the
  // state is the one before it. Else kNoRun.
  std::uint64_t open_run = kNoRun;
  auto fields() { return std::tie(worker, iteration, merged_run, merged_weight_bits, open_run); }
};

// worker -> master: it is there, whole; or why not, by an ErrorCode other than 0.
struct StateSavedMessage {
  std::uint64_t worker = 0;
  std::uint64_t iteration = 0;
  std::uint32_t code = 0;
  std::string reason;
  auto fields() { return std::tie(worker, iteration, code, reason); }
};

// worker -> master, every kBeatInterval: alive. `progress` grows while the run computes or
// exchanges; a run whose progress stands still is stalled, however alive its process.
struct BeatMessage {
  std::uint64_t worker = 0;
  std::uint64_t run = kNoRun;       // under way
  std::uint64_t progress = 0;
  auto fields() { return std::tie(worker, run, progress); }
};

// worker -> master: the run's contribution is in the store, whole.
struct TrainedMessage {
  std::uint64_t worker = 0;
  std::uint64_t run = 0;
  std::uint32_t loss_bits = 0;      // bit pattern of a float
  std::uint64_t base_version = 0;   // weights it started from
  std::uint64_t samples = 0;
  PhaseTimes phases = {};
  Traffic traffic = {};
  // A WeightsCheck of a replica; kNoVersion: none.
  std::uint64_t checked_version = kNoVersion, weights_digest = 0;
  std::string fault = {};  // loss not finite: the layer and blob that were not first
  ReadFaults read_faults = {};  // since the report before, of a run that came to nothing, too
  auto fields() {
    return std::tie(worker, run, loss_bits, base_version, samples, phases.data_us,
                    phases.forward_us, phases.backward_us, phases.exchange_us, phases.wait_us,
                    traffic.pushed_bytes, traffic.pulled_bytes, checked_version, weights_digest,
                    fault, read_faults.skipped_records, read_faults.parser_deaths);
  }
};

// worker -> master: leaves of its own will, or cannot go on. `code` 0: of its own will.
struct LeaveMessage {
  std::uint64_t worker = 0;
  std::uint32_t code = 0;
  std::string reason;
  auto fields() { return std::tie(worker, code, reason); }
};

// master -> worker: the job is over; end with exit code 0.
struct StopMessage {
  std::string reason;
  auto fields() { return std::tie(reason); }
};

// Numbers in one message of the next two kinds, at most: longer lists go in several, in order.
inline constexpr std::size_t kNumbersMax = 336;
static_assert(kNumbersMax * sizeof(std::uint64_t) + kTextMax + 24 * sizeof(std::uint64_t) <
              kMessageBytesMax);

// master -> merger of a part: a PartOrder, or a piece of one (src/train/parts/part_messages.hpp).
struct PartOrderMessage {
  std::uint32_t kind = 0;
  std::uint64_t id = 0, base = 0, version = 0, iteration = 0;
  std::uint32_t stage = 0, first_slot = 0, lr_scale_bits = 0, flags = 0;
  std::uint32_t is_last = 1;
  std::vector<std::uint64_t> numbers;
  auto fields() {
    return std::tie(kind, id, base, version, iteration, stage, first_slot, lr_scale_bits, flags,
                    is_last, numbers);
  }
};

// merger of a part -> master: a PartAnswer, or a piece of one.
struct PartAnswerMessage {
  std::uint32_t kind = 0;
  std::uint64_t id = 0;
  std::uint32_t slot = 0, flags = 0, code = 0;
  std::string text;
  std::uint32_t is_last = 1;
  std::vector<std::uint64_t> numbers;
  auto fields() { return std::tie(kind, id, slot, flags, code, text, is_last, numbers); }
};

// anybody -> master: how does the job stand? The answer is a JobStatusMessage, then a
// WorkerStatusMessage for each worker. See JobStatus; a double travels as its bit pattern.
struct StatusRequestMessage {
  std::uint32_t protocol = kProtocolVersion;
  auto fields() { return std::tie(protocol); }
};

struct JobStatusMessage {
  std::string job, training, schedule;
  std::uint64_t flags = 0;           // see status_messages.cpp, as for the rest
  std::uint64_t iteration = 0, max_iteration = 0, merges = 0, contributions = 0;
  std::uint64_t rejected = 0, discarded = 0, ignored = 0, samples = 0, term = 0;
  std::uint64_t workers_alive = 0, workers_min = 0, stage = 0, stages = 0, uptime_ms = 0;
  std::uint32_t loss_bits = 0, accuracy_bits = 0, test_loss_bits = 0;  // of floats; NaN: unknown
  std::uint64_t staleness_sum_bits = 0;
  std::uint64_t merges_rate_bits = 0, images_rate_bits = 0;
  ReadFaults read_faults = {};
  std::uint64_t rows = 0;            // WorkerStatusMessages that follow
  auto fields() {
    return std::tie(job, training, schedule, flags, iteration, max_iteration, merges,
                    contributions, rejected, discarded, ignored, samples, term, workers_alive,
                    workers_min, stage, stages, uptime_ms, loss_bits, accuracy_bits, test_loss_bits,
                    staleness_sum_bits, merges_rate_bits, images_rate_bits,
                    read_faults.skipped_records, read_faults.parser_deaths, rows);
  }
};

struct WorkerStatusMessage {
  std::uint64_t worker = 0;
  std::string name, device, gone_why;
  std::uint32_t state = 0;           // a WorkerState
  std::uint64_t iteration = 0, runs = 0, samples = 0, dropped = 0, staleness = 0, silent_ms = 0;
  std::uint64_t images_rate_bits = 0, bytes_rate_bits = 0;
  PhaseTimes phases = {};
  Traffic traffic = {};
  ReadFaults read_faults = {};
  auto fields() {
    return std::tie(worker, name, device, gone_why, state, iteration, runs, samples, dropped,
                    staleness, silent_ms, images_rate_bits, bytes_rate_bits, phases.data_us,
                    phases.forward_us, phases.backward_us, phases.exchange_us, phases.wait_us,
                    traffic.pushed_bytes, traffic.pulled_bytes, read_faults.skipped_records,
                    read_faults.parser_deaths);
  }
};

}  // namespace speedo
