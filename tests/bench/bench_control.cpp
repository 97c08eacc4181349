// The control plane's ceiling: merges per second of asynchronous training with a net so small that
// computing it costs nothing, over real sockets and a real redis-server. Usage: bench_control
// [merges]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/store/redis_store.hpp>

#include "actors/node.hpp"
#include "base/log.hpp"
#include "support/generated_parts.hpp"
#include "support/redis_server.hpp"

namespace speedo {
namespace {

Result<std::shared_ptr<ParameterStore>> open_store(const StoreAddress& address,
                                                   const std::string& job) {
  SPEEDO_ASSIGN(const RedisOptions options, parse_redis_uri(address.text()));
  return open_redis_store(options, job);
}

// When training began and ended, as the master's progress tells.
struct Times {
  Instant first{0}, last{0};
  std::uint64_t first_iteration = 0;
};

double merges_per_second(const std::string& redis, std::uint64_t workers, std::uint64_t merges) {
  MasterOptions options;
  options.store = StoreAddress(redis);
  options.job = "bench";
  options.session.workers_start = workers;
  options.session.max_iteration = merges;
  options.spec.solver_text = test::generated_solver(
      1, "base_lr: 0.01 lr_policy: \"fixed\" random_seed: 1", false);
  std::promise<std::string> address;
  Times times;
  MasterHooks hooks;
  hooks.on_listening = [&](const std::string& text) { address.set_value(text); };
  hooks.on_progress = [&](const MasterProgress& progress, const std::vector<TestScores>*) {
    times.last = steady_clock().now();
    if (times.first.count() != 0 || progress.iteration < merges / 10) return;
    times.first = times.last;
    times.first_iteration = progress.iteration;
  };
  auto master = std::async(std::launch::async, [&] {
    return run_master(options, hooks, test::cpu_parts(), open_store);
  });
  const std::string where = address.get_future().get();
  std::vector<std::future<Result<void>>> running;
  for (std::uint64_t i = 0; i < workers; ++i) {
    running.push_back(std::async(std::launch::async, [&where] {
      const WorkerOptions worker{.master = where,
                                 .store_override = {},
                                 .count = 1,
                                 .name_prefix = "bench",
                                 .session = {}};
      return run_worker(worker, {}, test::cpu_parts(), open_store);
    }));
  }
  const auto progress = master.get();
  for (auto& worker : running) worker.get().ignore("the master's result says it");
  if (!progress) {
    std::fprintf(stderr, "bench_control: %s\n", progress.error().message.c_str());
    std::exit(1);
  }
  const std::chrono::duration<double> seconds = times.last - times.first;
  return static_cast<double>(progress->iteration - times.first_iteration) / seconds.count();
}

}  // namespace
}  // namespace speedo

int main(int argc, char** argv) {
  speedo::set_log_level(speedo::LogLevel::kError);
  const std::uint64_t merges = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5000;
  speedo::test::RedisServer redis;
  std::printf("%u cores, %llu merges each\n", std::thread::hardware_concurrency(),
              static_cast<unsigned long long>(merges));
  for (const bool local : {false, true}) {
    for (const std::uint64_t workers : {1, 2, 4}) {
      const double rate = speedo::merges_per_second(
          local ? redis.unix_uri() : redis.tcp_uri(), workers, merges);
      std::printf("async, %llu worker(s), redis by %s: %.0f merges/s\n",
                  static_cast<unsigned long long>(workers), local ? "unix socket" : "TCP", rate);
    }
  }
  return 0;
}
