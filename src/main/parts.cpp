#include "main/parts.hpp"

#include <speedo/store/redis_store.hpp>

#include "cpu/cpu_backend.hpp"
#include "data/feed_factory.hpp"

namespace speedo {

TrainerParts trainer_parts() {
  return {[] { return make_cpu_backend(); }, [] { return make_feed_factory(); }};
}

Result<std::shared_ptr<ParameterStore>> open_store(const std::string& uri, const std::string& job) {
  SPEEDO_ASSIGN(const RedisOptions options, parse_redis_uri(uri));
  return open_redis_store(options, job);
}

}  // namespace speedo
