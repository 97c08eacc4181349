#pragma once

#include <cstdint>

#include <speedo/base/result.hpp>

#include "local/private_redis.hpp"
#include "train/job/open_store.hpp"

namespace speedo {

// What a client of the store waits for, and what it and the server are busy with.
struct TransferTimes {
  double seconds = 0.0;        // median of one record
  double server_seconds = 0.0; // on a processor, per record
  double client_seconds = 0.0;
};

struct ExchangeTimes {
  TransferTimes read_small, write_small;  // a record of a few floats
  TransferTimes read, write;              // of `floats` floats
  double merge_seconds = 0.0;             // reading one contribution, merging and publishing
  double add_bytes_per_second = 0.0;      // arithmetic of a merge in memory
  double message_seconds = 0.0;           // over the loopback, one way, a waiting thread woken
};

// One client alone, nothing else at work. Errors: those of the store.
Result<ExchangeTimes> measure_exchange(const OpenStore& open_store, const PrivateRedis& redis,
                                       std::uint64_t floats, double seconds);

}  // namespace speedo
