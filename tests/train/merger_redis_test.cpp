// The merger on a real Redis that dies at the worst moments: merged once or not at all.

#include <chrono>
#include <thread>

#include <speedo/store/redis_store.hpp>

#include "support/redis_server.hpp"
#include "train/merger_fixture.hpp"

namespace speedo::test {
namespace {

std::shared_ptr<ParameterStore> open_store(const std::string& uri, int attempts) {
  auto options = parse_redis_uri(uri);
  require(options);
  options->attempts_max = attempts;
  options->backoff_first = std::chrono::milliseconds(10);
  options->backoff_max = std::chrono::milliseconds(100);
  auto store = open_redis_store(*options, "merge");
  require(store);
  return *store;
}

std::vector<float> plus(std::vector<float> values, const std::vector<float>& delta) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += delta[i];
  return values;
}

}  // namespace

TEST_CASE("a merge on Redis", "[merger][redis]") {
  RedisServer server;
  MergerFixture fixture({}, kManyChunks, open_store(server.unix_uri(), 8));
  std::vector<float> expected = fixture.start;
  for (std::uint64_t run = 1; run <= 5; ++run) {
    expected = plus(expected, fixture.contribute(0, run, 0.01F));
    REQUIRE(fixture.merge_or_fail({{0, run}}, false).version == fixture.after(run));
    REQUIRE((fixture.stored(run) == expected));
  }
}

TEST_CASE("Redis killed in the middle of a merge comes back", "[merger][redis]") {
  const bool keeps_data = GENERATE(true, false);
  const int delay_us = GENERATE(0, 500, 1000, 2000, 4000);
  CAPTURE(keeps_data, delay_us);
  RedisServer server({"", keeps_data, ""});
  MergerFixture fixture({}, kManyChunks, open_store(server.tcp_uri(), 60));
  const auto delta = fixture.contribute(0, 1, 0.01F);
  std::promise<Result<MergeResult>> done;
  fixture.merger->merge(fixture.job({{0, 1}}, false),
                        [&](Result<MergeResult> result) { done.set_value(std::move(result)); });
  std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  server.restart();
  const auto result = done.get_future().get();
  require(result);
  // Its contribution may be lost with the server: then it is not merged, and said so.
  const bool merged = result->rejected.empty();
  REQUIRE(result->version == fixture.after(merged ? 1 : 0));
  REQUIRE((merged || !keeps_data));
  const auto expected = merged ? plus(fixture.start, delta) : fixture.start;
  REQUIRE((fixture.copy().weights == expected));
  // The next merge goes on from there.
  const auto next = fixture.contribute(0, 2, 0.01F);
  const Version version = fixture.merge_or_fail({{0, 2}}, false).version;
  REQUIRE((fixture.stored(version.value - fixture.first.value) == plus(expected, next)));
}

TEST_CASE("Redis that is waited for no longer fails the merge and changes nothing",
          "[merger][redis]") {
  RedisServer server;
  MergerFixture fixture({}, kManyChunks, open_store(server.tcp_uri(), 3));
  fixture.contribute(0, 1, 0.01F);
  server.kill();
  fixture.merger->stop_waiting();
  const auto result = fixture.merge({{0, 1}}, false);
  REQUIRE_FALSE(result.has_value());
  REQUIRE(result.error().code == ErrorCode::kUnavailable);
  REQUIRE_THAT(result.error().message, Catch::Contains(std::to_string(server.port())));
  const Merger::Copy copy = fixture.copy();
  REQUIRE(copy.version == fixture.after(0));
  REQUIRE((copy.weights == fixture.start));
  server.start();
  fixture.enter_or_fail(0);
  REQUIRE((fixture.stored(1) == fixture.start));
}

TEST_CASE("gradients are not applied when they cannot be published", "[merger][redis]") {
  RedisServer server({"", false, "maxmemory 64mb"});
  MergerFixture fixture(config_of({.kind = UpdateKind::kGradientOnly}), kManyChunks,
                        open_store(server.tcp_uri(), 3));
  fixture.contribute(0, 1, 0.01F);
  fixture.contribute(1, 1, 0.01F);
  fixture.contribute(2, 1, 0.01F);
  const auto filler = open_store(server.tcp_uri(), 3);
  while (filler->put_blob("fill" + std::to_string(std::rand()), std::string(1 << 20, 'x'))) {
  }
  const Merger::Copy before = fixture.copy();
  fixture.merger->stop_waiting();  // for room
  const auto result = fixture.merge({{0, 1}, {1, 1}}, true, 0);
  REQUIRE_FALSE(result.has_value());
  REQUIRE(result.error().code == ErrorCode::kUnavailable);
  REQUIRE_THAT(result.error().message, Catch::Contains("maxmemory"));
  const Merger::Copy after = fixture.copy();
  REQUIRE(after.version == before.version);
  REQUIRE(after.weights == before.weights);
  REQUIRE(after.histories == before.histories);
}

}  // namespace speedo::test
