#include "main/parts.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <speedo/store/redis_store.hpp>

#include "base/log.hpp"
#include "cpu/cpu_backend.hpp"
#include "data/feed_factory.hpp"

namespace speedo {

namespace {

// Of this thread and those that it makes.
void lower_priority(int nice) {
  const auto self = static_cast<id_t>(::gettid());
  const int now = ::getpriority(PRIO_PROCESS, self);
  if (nice > 0 && ::setpriority(PRIO_PROCESS, self, now + nice) != 0) {
    SPEEDO_WARN("the compute threads keep their priority: {}", std::strerror(errno));
  }
}

}  // namespace

TrainerParts trainer_parts(int compute_nice) {
  const auto make_backend = [compute_nice] {
    lower_priority(compute_nice);
    return make_cpu_backend();
  };
  return {make_backend, [] { return make_feed_factory(); }};
}

Result<std::shared_ptr<ParameterStore>> open_store(const std::string& uri, const std::string& job) {
  SPEEDO_ASSIGN(const RedisOptions options, parse_redis_uri(uri));
  return open_redis_store(options, job);
}

}  // namespace speedo
