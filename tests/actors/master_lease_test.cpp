// Who is master, on a store in memory, in a time that only passes when somebody waits.
#include "train/job/master_lease.hpp"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "support/catch.hpp"

#include <speedo/base/limits.hpp>
#include <speedo/base/platform.hpp>

#include "base/process_name.hpp"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "support/manual_clock.hpp"

#include "driven_pause.hpp"

namespace speedo {
namespace {

MasterClaim claim_of(const std::string& holder) {
  MasterClaim claim;
  claim.holder = holder;
  claim.time = kLeaseTime;
  return claim;
}

// A map whose next request fails as no store may: by throwing.
class BrokenKeyValue : public MemoryKeyValue {
 public:
  using MemoryKeyValue::MemoryKeyValue;
  void submit(KvPtr operation) override {
    if (breaks.exchange(false)) throw std::bad_alloc();
    MemoryKeyValue::submit(std::move(operation));
  }
  std::atomic<bool> breaks{false};
};

// A job's store and those who claim it; time passes only by their waiting.
struct Job {
  std::shared_ptr<ParameterStore> open() const {
    return std::make_shared<ChunkedStore>(memory, "job");
  }
  std::shared_ptr<Pause> leaping(std::function<void()> meanwhile = [] {}) {
    return std::make_shared<test::LeapingPause>(clock, std::move(meanwhile));
  }
  Result<std::unique_ptr<MasterLease>> claim(std::shared_ptr<Pause> pause, bool take_over = false) {
    return MasterLease::claim(open(), {.job = "job",
                                       .take_over = take_over,
                                       .poll_stop = {},
                                       .pause = std::move(pause)});
  }
  // A master that claims once and is never heard of again.
  std::uint64_t claimed_by(const std::string& holder) const {
    const auto answer = open()->claim_master(claim_of(holder));
    REQUIRE(answer);
    REQUIRE(answer->granted);
    return answer->term;
  }
  Instant waited() const { return clock.now() - start; }

  test::ManualClock clock;
  const Instant start = clock.now();
  std::shared_ptr<BrokenKeyValue> memory = std::make_shared<BrokenKeyValue>(clock);
};

// A lease of the job that is kept; its thread goes on when the test says so.
struct KeptLease {
  explicit KeptLease(Job& job) {
    auto claimed = job.claim(pause);
    REQUIRE(claimed);
    lease = std::move(claimed).value();
    lease->keep([this](Error error) { lost.set_value(std::move(error)); });
  }

  std::shared_ptr<test::DrivenPause> pause = std::make_shared<test::DrivenPause>();
  std::promise<Error> lost;
  std::unique_ptr<MasterLease> lease;  // last: its thread uses the others
};

}  // namespace

TEST_CASE("a lease that is given up can be claimed at once, with a higher term") {
  Job job;
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto lease = job.claim(job.leaping());
    REQUIRE(lease);
    CHECK((*lease)->term() > last);
    last = (*lease)->term();
  }
  CHECK(job.waited() == Instant{0});
}

TEST_CASE("the term of a master that goes on from a checkpoint is above the checkpoint's") {
  Job job;
  constexpr std::uint64_t kAhead = 9'000'000'000'000'000;  // of this machine's clock
  const auto lease = MasterLease::claim(
      job.open(), {.job = "job", .term_floor = kAhead, .poll_stop = {}, .pause = job.leaping()});
  REQUIRE(lease);
  CHECK((*lease)->term() == kAhead);
}

TEST_CASE("a master that lives keeps the job, and is named to the other one") {
  Job job;
  KeptLease first(job);
  Instant renewed = job.clock.now();
  const auto second = job.claim(job.leaping([&] {
    if (job.clock.now() - renewed < kLeaseRenewal) return;
    renewed = job.clock.now();
    first.pause->pass_to_next();
  }));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::kSuperseded);
  CHECK(second.error().message.find(readable(process_name())) != std::string::npos);
  // A renewal tells; the end need not be waited for.
  CHECK(job.waited() <= kLeaseRenewal + kTickInterval);
  for (int i = 0; i < 3; ++i) {
    job.clock.advance(kLeaseRenewal);
    first.pause->pass_to_next();
  }
  CHECK(first.lost.get_future().wait_for(Instant{0}) == std::future_status::timeout);
  CHECK_FALSE(job.open()->claim_master(claim_of("x"))->granted);
}

TEST_CASE("a master that is silent elsewhere is replaced at the end of its lease") {
  Job job;
  const std::uint64_t term = job.claimed_by("elsewhere/1 2 3/4");
  std::uint64_t last_wait = 0;
  const auto lease = job.claim(
      job.leaping([&] { last_wait = real_platform().wall_clock_microseconds(); }));
  REQUIRE(lease);
  CHECK((*lease)->term() > term);
  // The silent one has numbered its runs from its term on while this one waited.
  CHECK((*lease)->term() >= last_wait);
  CHECK(job.waited() >= kLeaseTime);
  CHECK(job.waited() <= kLeaseTime + kTickInterval);
}

TEST_CASE("a dead process of this machine is replaced at once") {
  Job job;
  std::string name = process_name();
  const std::size_t begin = name.find(' ') + 1;
  name.replace(begin, name.find(' ', begin) - begin, "1");  // This number's former owner.
  const std::uint64_t term = job.claimed_by(name);
  const auto lease = job.claim(job.leaping());
  REQUIRE(lease);
  CHECK((*lease)->term() > term);
  CHECK(job.waited() == Instant{0});
}

TEST_CASE("a master that is taken over from hears it at its next renewal, and does not release") {
  Job job;
  KeptLease old(job);
  auto successor = job.claim(job.leaping(), true);
  REQUIRE(successor);
  old.pause->pass();
  CHECK(old.lost.get_future().get().code == ErrorCode::kSuperseded);
  old.lease.reset();  // The old one goes ...
  const auto third = job.open()->claim_master(claim_of("x"));
  REQUIRE(third);
  CHECK_FALSE(third->granted);  // ... and the job is still the successor's.
}

TEST_CASE("a lease whose thread breaks says so, and is given back in the end") {
  Job job;
  KeptLease kept(job);
  job.memory->breaks = true;
  kept.pause->pass();
  const Error heard = kept.lost.get_future().get();
  CHECK(heard.code == ErrorCode::kInternal);
  CHECK(heard.message.find("'job'") != std::string::npos);
  kept.lease.reset();
  CHECK(job.open()->claim_master(claim_of("x"))->granted);
}

TEST_CASE("whoever waits for a lease can be told to stop") {
  Job job;
  job.claimed_by("elsewhere/1 2 3/4");
  const auto lease = MasterLease::claim(job.open(), {.job = "job",
                                                     .take_over = false,
                                                     .poll_stop = [] { return "asked to"; },
                                                     .pause = job.leaping()});
  REQUIRE_FALSE(lease);
  CHECK(lease.error().code == ErrorCode::kUnavailable);
  CHECK(job.waited() <= kTickInterval);
}

}  // namespace speedo
