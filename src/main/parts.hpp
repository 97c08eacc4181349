#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/trainer.hpp>

// The implementations behind the interfaces: the only place that picks them.
namespace speedo {

TrainerParts trainer_parts();

// The job's store on the Redis server at `uri`. Errors: as open_redis_store.
Result<std::shared_ptr<ParameterStore>> open_store(const std::string& uri, const std::string& job);

}  // namespace speedo
