// Who is master, on a store in memory.
#include "actors/master_lease.hpp"

#include <atomic>
#include <future>

#include "support/catch.hpp"

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "actors/process_name.hpp"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"

namespace speedo {
namespace {

MasterClaim claim_of(const std::string& holder) {
  MasterClaim claim;
  claim.holder = holder;
  claim.time = kLeaseTime;
  return claim;
}

struct Job {
  std::shared_ptr<ParameterStore> open() const {
    return std::make_shared<ChunkedStore>(memory, "job");
  }
  Result<std::unique_ptr<MasterLease>> claim(bool take_over = false) const {
    return MasterLease::claim(open(), {.job = "job", .take_over = take_over, .poll_stop = {}});
  }
  // A master that claims once and is never heard of again.
  std::uint64_t claimed_by(const std::string& holder) const {
    const auto answer = open()->claim_master(claim_of(holder));
    REQUIRE(answer);
    REQUIRE(answer->granted);
    return answer->epoch;
  }
  std::shared_ptr<MemoryKeyValue> memory = std::make_shared<MemoryKeyValue>();
};

Instant now() { return steady_clock().now(); }

}  // namespace

TEST_CASE("a lease that is given up can be claimed at once, with a higher epoch") {
  const Job job;
  std::uint64_t last = 0;
  const Instant start = now();
  for (int i = 0; i < 3; ++i) {
    const auto lease = job.claim();
    REQUIRE(lease);
    CHECK((*lease)->epoch() > last);
    last = (*lease)->epoch();
  }
  CHECK(now() - start < kLeaseRenewal);
}

TEST_CASE("a master that lives keeps the job, and is named to the other one") {
  const Job job;
  const auto first = job.claim();
  REQUIRE(first);
  std::atomic<bool> lost{false};
  (*first)->keep([&](const Error&) { lost = true; });
  const Instant start = now();
  const auto second = job.claim();
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kSuperseded);
  CHECK(second.error().message.find(readable(process_name())) != std::string::npos);
  CHECK(now() - start < kLeaseTime);  // A renewal tells; the end need not be waited for.
  std::this_thread::sleep_for(3 * kLeaseRenewal);
  CHECK_FALSE(lost);
}

TEST_CASE("a master that is silent elsewhere is replaced at the end of its lease") {
  const Job job;
  const std::uint64_t epoch = job.claimed_by("elsewhere/1 2 3/4");
  const Instant start = now();
  const auto lease = job.claim();
  REQUIRE(lease);
  CHECK((*lease)->epoch() > epoch);
  CHECK(now() - start >= kLeaseTime - std::chrono::milliseconds{300});
  CHECK(now() - start < kLeaseTime + std::chrono::milliseconds{500});
}

TEST_CASE("a dead process of this machine is replaced at once") {
  const Job job;
  std::string name = process_name();
  const std::size_t begin = name.find(' ') + 1;
  name.replace(begin, name.find(' ', begin) - begin, "1");  // This number's former owner.
  const std::uint64_t epoch = job.claimed_by(name);
  const Instant start = now();
  const auto lease = job.claim();
  REQUIRE(lease);
  CHECK((*lease)->epoch() > epoch);
  CHECK(now() - start < kTickInterval);
}

TEST_CASE("a master that is taken over from hears it at its next renewal, and does not release") {
  const Job job;
  auto old = job.claim();
  REQUIRE(old);
  std::promise<Error> lost;
  (*old)->keep([&](Error error) { lost.set_value(std::move(error)); });
  auto successor = job.claim(true);
  REQUIRE(successor);
  auto heard = lost.get_future();
  REQUIRE(heard.wait_for(3 * kLeaseRenewal) == std::future_status::ready);
  CHECK(heard.get().code == ErrorCode::kSuperseded);
  old = Error{};  // The old one goes ...
  const auto third = job.open()->claim_master(claim_of("x"));
  REQUIRE(third);
  CHECK_FALSE(third->granted);  // ... and the job is still the successor's.
}

TEST_CASE("whoever waits for a lease can be told to stop") {
  const Job job;
  job.claimed_by("elsewhere/1 2 3/4");
  const Instant start = now();
  const auto lease = MasterLease::claim(
      job.open(), {.job = "job", .take_over = false, .poll_stop = [] { return "asked to"; }});
  REQUIRE_FALSE(lease);
  CHECK(lease.error().code == ErrorCode::kUnavailable);
  CHECK(now() - start < kLeaseRenewal);
}

}  // namespace speedo
