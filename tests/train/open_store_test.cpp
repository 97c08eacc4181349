#include "train/job/open_store.hpp"

#include <string>
#include <utility>

#include <speedo/store/memory_store.hpp>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

namespace speedo {
namespace {

using std::chrono::seconds;

// The machine's, but that a sleep takes no time.
class NoTimePlatform : public Platform {
 public:
  const Clock& clock() const override { return clock_; }
  std::uint64_t wall_clock_microseconds() const override { return real_.wall_clock_microseconds(); }
  std::uint64_t random_bits() override { return real_.random_bits(); }
  std::string process_name() const override { return real_.process_name(); }
  bool is_known_dead(std::string_view name) const override { return real_.is_known_dead(name); }
  std::unique_ptr<Monitor> make_monitor() override { return real_.make_monitor(); }
  std::unique_ptr<Thread> start_thread(const char* name, std::function<void()> work) override {
    return real_.start_thread(name, std::move(work));
  }
  void sleep(Instant time) override { clock_.advance(time); }

 private:
  Platform& real_ = real_platform();
  test::ManualClock clock_;
};

// A store that can be opened from a moment on, by attempts that take no time.
struct AwayStore {
  NoTimePlatform platform = {};
  Instant begin = platform.clock().now();
  Instant away{0};
  ErrorCode code = ErrorCode::kUnavailable;
  int attempts = 0;

  Instant waited() const { return platform.clock().now() - begin; }
  Result<std::shared_ptr<ParameterStore>> open(
      seconds store_timeout, std::function<std::optional<std::string>()> poll_stop = {}) {
    const OpenStore open = [this](const StoreAddress&,
                                  const std::string&) -> Result<std::shared_ptr<ParameterStore>> {
      ++attempts;
      if (waited() < away) return Error{code, "nobody is there"};
      return std::shared_ptr<ParameterStore>(make_memory_store());
    };
    return waiting_opener(open, {.store_timeout = store_timeout,
                                 .poll_stop = std::move(poll_stop),
                                 .platform = &platform})(StoreAddress("127.0.0.1"), "job");
  }
};

}  // namespace

TEST_CASE("A store that is not there yet is waited for, and opened once it is") {
  AwayStore store{.away = seconds(40)};
  REQUIRE(store.open(seconds(60)));
  CHECK(store.waited() >= seconds(40));
  CHECK(store.waited() < seconds(60));
}

TEST_CASE("A store that does not come is given up after --store-timeout, with what was wrong") {
  AwayStore store{.away = seconds(1000)};
  const auto opened = store.open(seconds(60));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::kUnavailable);
  CHECK(opened.error().message ==
        "nobody is there; out of reach for 60 s (--store-timeout)");
  CHECK(store.waited() >= seconds(60));
}

TEST_CASE("What time does not mend is no reason to wait for a store; no patience is none") {
  AwayStore refuses{.away = seconds(1000), .code = ErrorCode::kRefused};
  const auto refused = refuses.open(seconds(60));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refuses.attempts == 1);
  AwayStore store{.away = seconds(1000)};
  const auto opened = store.open(seconds(0));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().message == "nobody is there");
  CHECK(store.attempts == 1);
}

TEST_CASE("A wait for a store ends with the reason to stop, before the next attempt") {
  AwayStore store{.away = seconds(1000)};
  const auto opened = store.open(seconds(60), [] { return std::optional<std::string>("SIGTERM"); });
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::kUnavailable);
  CHECK(opened.error().message ==
        "stopped (SIGTERM) while the store was waited for: nobody is there");
  CHECK(store.attempts == 1);
}

}  // namespace speedo
