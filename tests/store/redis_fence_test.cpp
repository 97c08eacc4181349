// Masters whose server dies, forgets, fills up, refuses or cuts them off.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <speedo/store/redis_facts.hpp>

#include "store/mastership.hpp"
#include "store/redis/redis_session.hpp"
#include "store/store_under_test.hpp"

namespace speedo::test {
namespace {

using std::chrono::milliseconds;

MasterClaim rival_claim(const std::string& holder, std::uint64_t term = 0) {
  MasterClaim claim;
  claim.holder = holder;
  claim.term = term;
  claim.time = std::chrono::hours(1);
  return claim;
}

RecordInfo stated(std::uint64_t version, std::size_t count) {
  RecordInfo info = info_of(version, count);
  info.state = "state " + std::to_string(version);
  return info;
}

}  // namespace

// A manifest that is there at rest names chunks that are there; with a log nothing that was said to
// be written is lost, without one it is at least never half there.
TEST_CASE("a server killed again and again in the middle of fenced puts", "[redis][fence]") {
  // The last: a user who may not ask which incarnation of the server it is.
  const std::string kind = GENERATE(as<std::string>(), "forgets", "logs", "forgets, few rights");
  const bool append_only = kind == "logs";
  CAPTURE(kind);
  RedisServer server({"", append_only,
                      "user w on >p ~speedo:* +@read +@write +@connection +eval"});
  RedisOptions options = patient(server.unix_uri());
  if (kind == "forgets, few rights") {
    options.credentials = {"w", Secret("p")};
  }
  constexpr std::size_t kCount = 3 * kChunkElements + 1;
  constexpr std::uint64_t kTerm = 1'800'000'000'000'000;
  std::atomic<std::uint64_t> last_put{0};
  std::atomic<int> kills{0}, failures{0}, wrong{0}, lost{0}, checked{0};
  std::atomic<bool> done{false}, alive{true};
  std::thread master([&, own = open(options)] {
    own->fence(kTerm);
    std::vector<float> target(kCount);
    for (std::uint64_t version = 1; !done; ++version) {
      const auto values = pattern(kCount, version);
      if (!put(*own, weights_key(), stated(version, kCount), values)) ++failures;
      last_put = version;
      const int kills_before = kills;
      if (!alive) continue;
      const auto info = get(*own, weights_key(), kModel, target);
      if (kills != kills_before) continue;
      ++checked;
      if (!info) {
        // The put may have been done just before the server died.
        const bool is_there = own->read(weights_key()).has_value();
        if (kills == kills_before && (is_there || append_only)) ++lost;
      } else if (target != values || info->version != version || info->term != kTerm ||
                 info->state != "state " + std::to_string(version)) {
        ++wrong;
      }
    }
  });
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(milliseconds(11 + 7 * i));
    const std::uint64_t before = last_put;
    ++kills;
    alive = false;
    server.kill();
    server.start();
    if (append_only && before > 0) {
      const auto reader = open(patient(server.tcp_uri()))->read(weights_key());
      if (!reader || (*reader)->info().version < before) ++lost;
    }
    alive = true;
  }
  const std::uint64_t at_rest = last_put;
  while (last_put < at_rest + 3) std::this_thread::sleep_for(milliseconds(5));
  done = true;
  master.join();
  REQUIRE(failures == 0);
  REQUIRE(wrong == 0);
  REQUIRE(lost == 0);
  REQUIRE(checked > 0);
  const auto store = open(server.tcp_uri());
  std::vector<float> target(kCount);
  require(get(*store, weights_key(), kModel, target));
  REQUIRE((target == pattern(kCount, last_put)));
  store->fence(kTerm - 1);
  REQUIRE(code_of(store->put_blob("job", "stale")) == ErrorCode::kSuperseded);
}

TEST_CASE("an emptied server is told again who is master", "[redis][master]") {
  RedisServer server;
  const auto old_master = open(patient(server.tcp_uri())),
             new_master = open(patient(server.tcp_uri()));
  const std::uint64_t old_term = old_master->claim_master(rival_claim("host/1"))->term;
  MasterClaim heir = rival_claim("host/2");
  heir.dead_holder = "host/1";
  const std::uint64_t term = new_master->claim_master(heir)->term;
  old_master->fence(old_term);
  new_master->fence(term);
  const auto values = pattern(100, 1);

  SECTION("by a renewal") {
    server.restart();
    REQUIRE(new_master->claim_master(rival_claim("host/2", term))->granted);
  }
  SECTION("by a write") {
    server.restart();
    require(put(*new_master, weights_key(), info_of(1, 100), values));
  }
  SECTION("although the old one was there first") {
    server.restart();
    require(old_master->claim_master(rival_claim("host/1", old_term)));
    require(put(*old_master, weights_key(), info_of(5, 100), values));
    REQUIRE(new_master->claim_master(rival_claim("host/2", term))->granted);
  }
  REQUIRE(code_of(old_master->claim_master(rival_claim("host/1", old_term))) ==
          ErrorCode::kSuperseded);
  REQUIRE(code_of(put(*old_master, weights_key(), info_of(6, 100), values)) ==
          ErrorCode::kSuperseded);
  require(put(*new_master, weights_key(), info_of(2, 100), values));
  require(new_master->claim_master(rival_claim("host/2", term)));
  REQUIRE_FALSE(old_master->claim_master(rival_claim("host/3"))->granted);
}

TEST_CASE("mastership is remembered with a log", "[redis][master]") {
  RedisServer server({"", true, ""});
  const auto store = open(patient(server.tcp_uri()));
  MasterClaim claim = rival_claim("host/1");
  claim.term_floor = 77;
  REQUIRE(store->claim_master(claim)->term == 77);
  server.restart();
  const auto answer = store->claim_master(rival_claim("host/2"));
  require(answer);
  REQUIRE_FALSE(answer->granted);
  REQUIRE(answer->holder == "host/1");
  REQUIRE(answer->term == 77);
  REQUIRE(answer->left <= std::chrono::hours(1));
  REQUIRE(answer->left > std::chrono::minutes(30));
}

// Each operation is waited for while the server still reads its log.
TEST_CASE("a server that still loads its data is waited for", "[redis][fence]") {
  RedisServer server({"", true, "key-load-delay 10000"});
  const auto store = open(patient(server.tcp_uri()));
  store->fence(5);
  for (int i = 0; i < 60; ++i) require(store->put_blob("blob" + std::to_string(i), "x"));
  require(put(*store, weights_key(), info_of(1, 10), pattern(10, 1)));
  server.kill();
  std::atomic<bool> good{false};
  std::thread master([&] {
    std::vector<float> target(10);
    const auto renewed = store->claim_master(rival_claim("host/1", 5));
    good = renewed && renewed->granted && get(*store, weights_key(), kModel, target) &&
           target == pattern(10, 1) && store->get_blob("blob59") &&
           put(*store, weights_key(), info_of(2, 10), pattern(10, 2));
  });
  server.start();
  master.join();
  REQUIRE(good);
}

TEST_CASE("a full server refuses a master's writes by name", "[redis][fence]") {
  RedisServer server({"", false, "maxmemory 8mb"});
  const auto store = open(server.tcp_uri());
  store->fence(3);
  const auto values = pattern(kChunkElements, 1);
  require(put(*store, weights_key(), info_of(1, values.size()), values));
  require(store->put_blob("job", "text"));
  command(server, {"CONFIG", "SET", "maxmemory", "1"});
  const auto claimed = store->claim_master(rival_claim("host/1"));
  for (const Result<void>& refused :
       {put(*store, weights_key(), info_of(2, values.size()), values),
        put(*store, weights_key(), info_of(2, 0), {}), store->put_blob("job", "more"),
        claimed ? Result<void>() : Result<void>(claimed.error())}) {
    REQUIRE(code_of(refused) == ErrorCode::kUnavailable);
    REQUIRE_THAT(refused.error().message, Catch::Contains("maxmemory"));
  }
  std::vector<float> target(values.size());
  require(get(*store, weights_key(), kModel, target));
  REQUIRE((target == values));
  REQUIRE(*store->get_blob("job") == "text");
  command(server, {"CONFIG", "SET", "maxmemory", "0"});
  require(put(*store, weights_key(), info_of(3, values.size()), values));
}

TEST_CASE("a server that cannot save refuses a master's writes by name", "[redis][fence]") {
  RedisServer server({"", false, "save 3600 1"});
  const auto store = open(server.unix_uri());
  store->fence(3);
  require(store->put_blob("job", "text"));
  // A folder lies where the server's file should: it cannot be replaced.
  const auto options = quick_options(server.unix_uri());
  std::filesystem::create_directories(
      std::filesystem::path(options.address.unix_path).parent_path() / "dump.rdb" / "in the way");
  REQUIRE_FALSE(command(server, {"SAVE"}).empty());
  command(server, {"BGSAVE"});
  Result<void> refused;
  while (refused) refused = store->put_blob("job", "more");
  REQUIRE(code_of(refused) == ErrorCode::kUnavailable);
  REQUIRE_THAT(refused.error().message, Catch::Contains("disk"));
  REQUIRE(code_of(put(*store, weights_key(), info_of(1, 0), {})) == ErrorCode::kUnavailable);
  REQUIRE(code_of(store->claim_master(rival_claim("host/1"))) == ErrorCode::kUnavailable);
}

TEST_CASE("a server whose disk fails is written to again once it is mended", "[redis][fence]") {
  RedisServer server({"", false, "save 3600 1"});
  const auto options = quick_options(server.unix_uri());
  const auto store = open(options);
  store->fence(3);
  const auto values = pattern(kChunkElements, 1);
  require(put(*store, weights_key(), info_of(1, values.size()), values));
  const auto file = std::filesystem::path(options.address.unix_path).parent_path() / "dump.rdb";
  std::filesystem::create_directories(file / "in the way");
  REQUIRE_FALSE(command(server, {"SAVE"}).empty());
  command(server, {"BGSAVE"});
  Result<void> refused;
  while (refused) refused = put(*store, weights_key(), info_of(2, values.size()), values);
  CHECK_THAT(refused.error().message, Catch::Contains("MISCONF"));
  REQUIRE(code_of(refused) == ErrorCode::kUnavailable);
  // A connection that breaks is made again, and somebody else connects.
  command(server, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  std::vector<float> target(values.size());
  require(get(*store, weights_key(), kModel, target));
  REQUIRE((target == values));
  require(open(options)->read(weights_key()));
  REQUIRE(code_of(put(*store, contribution_key(1, 1), info_of(1, 10), pattern(10, 1))) ==
          ErrorCode::kUnavailable);
  CHECK(ask_redis(options)->cannot_save);
  std::filesystem::remove_all(file);
  command(server, {"SAVE"});
  CHECK_FALSE(ask_redis(options)->cannot_save);
  require(put(*store, weights_key(), info_of(3, values.size()), values));
  REQUIRE((*store->read(weights_key()))->info().version == 3);
}

TEST_CASE("a replica takes no master", "[redis][fence]") {
  RedisServer primary;
  RedisServer replica({"", false, "replicaof 127.0.0.1 " + std::to_string(primary.port())});
  const auto store = open(replica.tcp_uri());
  store->fence(3);
  const auto claimed = store->claim_master(rival_claim("host/1"));
  REQUIRE(code_of(claimed) == ErrorCode::kUnavailable);
  REQUIRE_THAT(claimed.error().message,
               Catch::Contains("READONLY") && Catch::Contains("primary"));
  REQUIRE(code_of(put(*store, weights_key(), info_of(1, 0), {})) == ErrorCode::kUnavailable);
}

TEST_CASE("a master needs the right to use scripts", "[redis][fence]") {
  RedisServer server({"", false,
                      "user w on >p ~speedo:* +@read +@write +@connection\n"
                      "user m on >p ~speedo:* +@read +@write +@connection +eval"});
  const std::string place = "@127.0.0.1:" + std::to_string(server.port());
  const auto worker = open("redis://w:p" + place), master = open("redis://m:p" + place);
  const auto refused = worker->claim_master(rival_claim("host/1"));
  REQUIRE(code_of(refused) == ErrorCode::kRefused);
  REQUIRE_THAT(refused.error().message, Catch::Contains("+eval"));
  require(put(*worker, contribution_key(1, 1), info_of(1, 10), pattern(10, 1)));
  REQUIRE(master->claim_master(rival_claim("host/1"))->granted);
  master->fence(1);
  require(put(*master, weights_key(), info_of(1, 10), pattern(10, 1)));
  require(master->erase(contribution_key(1, 1)));
  require(master->clear());
}

// A claim whose connection breaks is sent again, and is the same claim.
TEST_CASE("claims and fenced puts on connections that are cut", "[redis][master]") {
  RedisServer server;
  const auto store = open(patient(server.tcp_uri()));
  std::atomic<bool> done{false};
  std::thread killer([&] {
    while (!done) {
      command(server, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      std::this_thread::sleep_for(milliseconds(3));
    }
  });
  int good = 0;
  std::uint64_t term = 0;
  const auto values = pattern(kChunkElements, 1);
  for (int round = 0; round < 30; ++round) {
    MasterClaim claim = rival_claim("host/" + std::to_string(round));
    claim.dead_holder = "host/" + std::to_string(round - 1);
    const std::uint64_t wanted = term == 0 ? 1 : term + kTermStride;
    const auto first = store->claim_master(claim);
    if (!first || !first->granted || first->term != wanted) continue;
    term = first->term;
    store->fence(term);
    claim.term = term;
    const auto renewed = store->claim_master(claim);
    const bool written =
        put(*store, weights_key(), info_of(term, values.size()), values).has_value();
    if (renewed && renewed->granted && renewed->term == term && written) ++good;
  }
  done = true;
  killer.join();
  REQUIRE(good == 30);
  REQUIRE((*store->read(weights_key()))->info().term == term);
}

TEST_CASE("what masters and workers hand each other expires", "[redis][fence]") {
  RedisServer server;
  const auto store = open(server.tcp_uri());
  store->fence(7);
  require(put(*store, local_key(7, 3), info_of(1, 10), pattern(10, 1)));
  require(put(*store, weights_key(), info_of(1, 10), pattern(10, 1)));
  const auto ttl = [&](const std::string& key) {
    return number_of(quick_options(server.tcp_uri()), "TTL", "speedo:{test}" + key);
  };
  REQUIRE(ttl(":master/7/3/local:m") > 6 * 24 * 3600);
  REQUIRE(ttl(":master/7/3/local:t7:s0:c0") > 6 * 24 * 3600);
  REQUIRE(ttl(":weights:m") == -1);
  REQUIRE(ttl(":weights:t7:s0:c0") == -1);
  REQUIRE(ttl("/term") == -1);
}

}  // namespace speedo::test
