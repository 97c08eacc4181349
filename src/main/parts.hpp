#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>
#include <speedo/train/trainer.hpp>

#include "actors/node.hpp"
#include "cpu/cpu_backend.hpp"

// The implementations behind the interfaces: the only place that picks them.
namespace speedo {

constexpr int kComputeNiceMax = 19;
// Of local clusters: workers, master and store share the cores. At 0 a merge of LeNet waits some
// milliseconds for one.
constexpr int kLocalComputeNice = 5;

// What the backends of a process are made of.
struct ComputeOptions {
  int threads = 0;  // of each backend; 0: as many as the process may use
  CpuPrecision precision = CpuPrecision::kFloat32;
  // The nice value of the threads that compute, over the process's own, 0..kComputeNiceMax. So the
  // exchange, which needs a core for moments only, gets it at once though every core computes.
  int nice = 0;
};

TrainerParts trainer_parts(const ComputeOptions& options = {});

// Opens the job's store on the Redis server at an address; without credentials on one that asks for
// none. Errors: as open_redis_store.
OpenStore store_opener(const RedisCredentials& credentials = {});

}  // namespace speedo
