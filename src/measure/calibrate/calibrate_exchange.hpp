#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>

#include "local/private_redis.hpp"
#include "measure/calibrate/calibrate_parts.hpp"
#include "sim/plan/cost_cluster.hpp"

namespace speedo {

// What a client of the store waits for, and what it and the server are busy with.
struct TransferTimes {
  double seconds = 0.0;        // of one record, undisturbed()
  double server_seconds = 0.0; // on a processor, per record
  double client_seconds = 0.0;
};

struct ExchangeTimes {
  TransferTimes read_small, write_small;  // a record of a few floats
  TransferTimes read, write;              // of `floats` floats
  TransferTimes merge;                    // reading one contribution, merging and publishing
  TransferTimes merge_gradients;          // the same with the job's rule
  double add_bytes_per_second = 0.0;      // arithmetic of a merge in memory
  double copy_bytes_per_second = 0.0;     // of weights that are read in memory
  double message_seconds = 0.0;           // over the loopback, one way, a waiting thread woken
};

// Every codec with its usual parameter, on one core: noise of a gradient's shape, with a residual.
std::vector<sim::CodecCosts> measure_codecs(double seconds);

// One client alone, nothing else at work. Errors: those of the store, and of the job's solver.
Result<ExchangeTimes> measure_exchange(const CalibrateParts& parts, const PrivateRedis& redis,
                                       const JobSpec& job, std::uint64_t floats, double seconds);

}  // namespace speedo
