#include "main/parts.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <speedo/backend/backend.hpp>

#include "support/catch.hpp"

namespace speedo {
namespace {

int priority_of(pid_t thread) { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(thread)); }

TEST_CASE("Compute threads are nicer than the process, however many backends they make") {
  const int process = priority_of(::getpid());
  int once = 0, twice = 0;
  bool made = false;
  std::thread([&] {
    const TrainerParts parts = trainer_parts({.nice = 5});
    made = static_cast<bool>(parts.make_backend());
    once = priority_of(::gettid());
    made = parts.make_backend() && made;  // as for another job
    twice = priority_of(::gettid());
  }).join();
  CHECK(made);
  CHECK(once == std::min(process + 5, kComputeNiceMax));
  CHECK(twice == once);
  CHECK(priority_of(::getpid()) == process);
}

TEST_CASE("Nets that are planned alone have nothing tried on a GPU, which is kept to compute on") {
  const ComputeOptions computes{.threads = 3, .gpu = GpuOptions{.index = 2}};
  const ComputeOptions plans = for_plans(computes), others = for_plans_of_others(computes);
  for (const ComputeOptions* each : {&plans, &others}) {
    REQUIRE(each->gpu.has_value());
    CHECK(each->gpu->index == 2);
    CHECK(each->threads == 3);
    CHECK_FALSE(each->gpu->tries);
  }
  CHECK(computes.gpu->tries);
  CHECK_FALSE(plans.gpu->lets_go);
  CHECK(others.gpu->lets_go);
  CHECK_FALSE(for_plans_of_others({.threads = 1}).gpu.has_value());
}

TEST_CASE("Certificates for servers of which none is by TLS are refused") {
  StoreTerms terms;
  terms.tls.authority = "ca.pem";
  const auto clear = redis_servers(StoreAddress("redis://here:1,there:2"), terms);
  REQUIRE_FALSE(clear);
  CHECK(clear.error().code == ErrorCode::kUsage);
  CHECK(clear.error().message.find("rediss://") != std::string::npos);
  CHECK(redis_servers(StoreAddress("rediss://here:1"), terms));
  terms.tls = {};
  CHECK(redis_servers(StoreAddress("redis://here:1"), terms));
}

}  // namespace
}  // namespace speedo
