// Rates of exchange: the bucket by itself, and with a real redis-server.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <speedo/store/redis_store.hpp>
#include <speedo/store/traffic_limit.hpp>

#include "support/catch.hpp"
#include "support/redis_server.hpp"

namespace speedo {
namespace {

using Way = TrafficLimit::Way;
using std::chrono::milliseconds;

TEST_CASE("a limit gives what time has brought, and a short burst at most") {
  const TrafficLimit::Clock::time_point start{};
  TrafficLimit limit(100e3, start);  // 100 bytes a millisecond; a burst is 16384
  CHECK(limit.take(Way::kOut, 1 << 20, start) == 16384);
  CHECK(limit.take(Way::kOut, 1 << 20, start) == 0);
  CHECK(limit.take(Way::kIn, 1 << 20, start) == 16384);  // the other way by itself
  CHECK(limit.take(Way::kOut, 1 << 20, start + milliseconds(30)) == 0);  // 3000: too few
  CHECK(limit.next(Way::kOut, 1 << 20) >= start + milliseconds(40));
  CHECK(limit.next(Way::kOut, 1 << 20) < start + milliseconds(42));
  CHECK(limit.take(Way::kOut, 1000, start + milliseconds(30)) == 1000);  // all that is wanted
  CHECK(limit.take(Way::kOut, 1 << 20, start + milliseconds(80)) == 7000);
  limit.give_back(Way::kOut, 5000);
  CHECK(limit.take(Way::kOut, 1 << 20, start + milliseconds(80)) == 5000);
  // A long pause is not made up for.
  CHECK(limit.take(Way::kOut, 1 << 20, start + std::chrono::hours(1)) == 16384);
}

TEST_CASE("a limit's sum over any time is its rate") {
  TrafficLimit::Clock::time_point now{};
  TrafficLimit limit(50e6, now);
  double taken = 0.0;
  for (int step = 0; step < 20000; ++step) {
    now += std::chrono::microseconds(100);
    taken += static_cast<double>(limit.take(Way::kIn, 1 << 16, now));
  }
  CHECK(taken >= 0.99 * 2 * 50e6);
  CHECK(taken <= 2 * 50e6 + 1e6);
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// How often it was another one while it was waited for.
template <class Condition>
std::size_t changes_until(const Condition& is_over, const std::atomic<std::uint64_t>& progress) {
  std::uint64_t last = progress;
  std::size_t changes = 0;
  while (!is_over()) {
    const std::uint64_t now = progress;
    if (std::exchange(last, now) != now) ++changes;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return changes;
}

TEST_CASE("what goes out of a record, or comes in, is seen long before all of it is there") {
  const test::RedisServer server;
  RedisOptions options = parse_redis_uri(server.tcp_uri()).value();
  options.limit = std::make_shared<TrafficLimit>(2e6);
  const auto store = open_redis_store(options, "watched").value();
  const std::vector<float> values(std::size_t{1} << 18U, 0.5F);  // one chunk, half a second
  RecordInfo info;
  info.element_count = values.size();
  std::atomic<std::uint64_t> progress{0};
  const auto writer = store->write(weights_key(), info);
  writer->watch(progress);
  writer->write(0, values);
  CHECK(changes_until([&] { return writer->is_sent(); }, progress) > 5);
  REQUIRE(writer->finish());
  const auto reader = store->read(weights_key()).value();
  reader->watch(progress);
  std::vector<float> target(values.size());
  reader->request(0, target);
  CHECK(changes_until([&] { return reader->is_done(0); }, progress) > 5);
  CHECK(reader->wait(0));
  CHECK(target == values);
}

TEST_CASE("a store with a limit takes the time that its rate demands, and small ones do not wait") {
  const test::RedisServer server;
  RedisOptions options = parse_redis_uri(server.tcp_uri()).value();
  constexpr double kRate = 16e6;
  options.limit = std::make_shared<TrafficLimit>(kRate);
  const auto store = open_redis_store(options, "limited").value();
  std::vector<float> values(std::size_t{4} << 20U, 0.5F);  // 16 MiB
  const double demanded = static_cast<double>(values.size() * sizeof(float)) / kRate;
  std::atomic<bool> is_done{false};
  Result<void> put_done;  // Catch2's checks are for one thread.
  double written = 0.0;
  std::thread writer([&] {
    written = seconds_of([&] { put_done = put(*store, weights_key(), {}, values); });
    is_done = true;
  });
  // Each would wait for the rest of the record if it went after its chunks.
  std::this_thread::sleep_for(milliseconds(100));
  int answered = 0;
  while (!is_done && answered < 20) {
    CHECK(store->put_blob("small", std::string(100, 'x')));
    if (!is_done) ++answered;
  }
  writer.join();
  CHECK(put_done);
  CHECK(answered == 20);
  CHECK(written >= 0.9 * demanded);
  std::vector<float> read(values.size());
  const double taken = seconds_of([&] { CHECK(get(*store, weights_key(), {}, read)); });
  CHECK(taken >= 0.9 * demanded);
  CHECK(read == values);
}

}  // namespace
}  // namespace speedo
