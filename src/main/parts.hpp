#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/trainer.hpp>

// The implementations behind the interfaces: the only place that picks them.
namespace speedo {

constexpr int kComputeNiceMax = 19;

// `compute_nice`: the nice value of the threads that compute, over the process's own,
// 0..kComputeNiceMax. So the exchange, which needs a core for moments only, gets it at once though
// every core computes.
TrainerParts trainer_parts(int compute_nice = 0);

// The job's store on the Redis server at `uri`. Errors: as open_redis_store.
Result<std::shared_ptr<ParameterStore>> open_store(const std::string& uri, const std::string& job);

}  // namespace speedo
