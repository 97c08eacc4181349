#include "main/parts.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <speedo/store/redis_store.hpp>

#include "base/log.hpp"
#include "data/feed_factory.hpp"

namespace speedo {

namespace {

// Of this thread and those that it makes, against the process's first thread: a trainer's thread
// makes another backend for another job, and must not sink further each time.
void lower_priority(int nice) {
  if (nice == 0) return;
  const int process = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::getpid()));
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), process + nice) != 0) {
    SPEEDO_WARN("the compute threads keep their priority: {}", std::strerror(errno));
  }
}

}  // namespace

TrainerParts trainer_parts(const ComputeOptions& options) {
  TrainerParts parts;
  parts.make_backend = [options]() -> Result<std::unique_ptr<Backend>> {
    lower_priority(options.nice);
    return make_cpu_backend(
        CpuOptions{.threads = options.threads, .precision = options.precision});
  };
  parts.make_feeds = [] { return make_feed_factory(); };
  return parts;
}

Result<std::shared_ptr<ParameterStore>> open_store(const std::string& uri, const std::string& job) {
  SPEEDO_ASSIGN(const RedisOptions options, parse_redis_uri(uri));
  return open_redis_store(options, job);
}

}  // namespace speedo
