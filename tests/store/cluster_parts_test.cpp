// What is known of a Redis Cluster without one: slots, the names of parts, redirections, addresses.
// And that the parts of a job do lie on all primaries.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/store_address.hpp>

#include "store/redis/slot_map.hpp"
#include "store/redis_reply.hpp"
#include "store/store_under_test.hpp"

namespace speedo::test {
namespace {

RedisAddress node(const std::string& text) { return parse_redis_address(text).value(); }

// How many of the parts each of so many primaries with equal ranges of slots has.
std::vector<std::size_t> shares(const std::vector<std::string>& tags, std::size_t primaries) {
  std::vector<std::size_t> count(primaries);
  for (const std::string& tag : tags) ++count[key_slot(tag) * primaries / kKeySlots];
  return count;
}

}  // namespace

TEST_CASE("a key's slot is that of its hash tag", "[store][cluster]") {
  CHECK(key_slot("123456789") == 0x31c3);  // the check value of CRC16 XMODEM
  CHECK(key_slot("foo") == 12182);
  CHECK(key_slot("") == 0);
  CHECK(key_slot("speedo:{foo}:weights:m") == key_slot("foo"));
  CHECK(key_slot("a{foo}b{bar}") == key_slot("foo"));
  CHECK(key_slot("{}foo") != key_slot("foo"));
  CHECK(key_slot("{foo") != key_slot("foo"));
  CHECK(key_slot("{{foo}}") == key_slot("{foo"));
}

TEST_CASE("a server says the same of keys", "[redis][cluster]") {
  Random random = Random::derive(7, {1});
  const std::string letters = "abc{}:09";
  for (int i = 0; i < 40; ++i) {
    std::string key;
    for (std::uint64_t length = random.below(24) + 1; length > 0; --length) {
      key += letters[random.below(letters.size())];
    }
    CAPTURE(key);
    CHECK(std::to_string(key_slot(key)) ==
          common_cluster().ask(0, "CLUSTER KEYSLOT '" + key + "'"));
  }
}

TEST_CASE("a job's parts lie evenly over any number of primaries", "[store][cluster]") {
  for (const std::string job : {"job", "a", "lenet-5_x.y"}) {
    CAPTURE(job);
    const std::vector<std::string> tags = part_tags(job);
    REQUIRE(tags.size() == kClusterParts);
    CHECK(tags == part_tags(job));
    CHECK(tags.front() == job);
    CHECK(std::set<std::string>(tags.begin(), tags.end()).size() == tags.size());
    for (std::size_t primaries = 1; primaries <= kClusterParts; ++primaries) {
      CAPTURE(primaries);
      const auto [least, most] = std::ranges::minmax(shares(tags, primaries));
      CHECK(least >= kClusterParts / primaries);
      CHECK(most <= (kClusterParts + primaries - 1) / primaries);
    }
    for (std::size_t primaries = 3; primaries <= kClusterParts; ++primaries) {
      for (std::size_t part = 0; part < kClusterParts; ++part) {
        const std::string& next = tags[(part + 1) % kClusterParts];
        CHECK(key_slot(tags[part]) * primaries / kKeySlots !=
              key_slot(next) * primaries / kKeySlots);
      }
    }
  }
  // They are what jobs in clusters are found by.
  CHECK(part_tags("job")[1] == "job:10369");
  CHECK(part_tags("job")[15] == "job:23767");
}

TEST_CASE("a record's chunks spread over all primaries, and clearing removes them all",
          "[redis][cluster]") {
  const StoreUnderTest store("cluster");
  require(put(*store, "weights", info_of(1, 48 * kChunkElements), pattern(48 * kChunkElements, 1)));
  // 48 chunks and a manifest, 16 parts, of which each of three primaries has five or six.
  std::size_t all = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    all += common_cluster().keys_on(i);
    CHECK(common_cluster().keys_on(i) >= 15);
    CHECK(common_cluster().keys_on(i) <= 19);
  }
  CHECK(all == 49);
  CHECK(*(*store->read("weights"))->is_whole());
  require(store->clear());
  for (std::size_t i = 0; i < 3; ++i) CHECK(common_cluster().keys_on(i) == 0);
}

TEST_CASE("a job leaves others of a cluster alone whose names begin as its own",
          "[redis][cluster]") {
  const StoreUnderTest store("cluster");
  const auto other =
      open_redis_store(cluster_options(common_cluster().address()), "test.2").value();
  const std::size_t count = 20 * kChunkElements;
  require(put(*store, "weights", info_of(1, count), pattern(count, 1)));
  require(put(*other, "weights", info_of(1, count), pattern(count, 2)));
  require(store->clear());
  std::vector<float> target(count);
  require(get(*other, "weights", kModel, target));
  CHECK(target == pattern(count, 2));
}

TEST_CASE("redirections are taken apart", "[store][cluster]") {
  using Kind = RedisRedirect::Kind;
  const RedisAddress asked = node("redis-cluster://one:1");
  const auto moved = redirect_of("MOVED 3999 10.0.0.2:6381", asked);
  REQUIRE(moved);
  CHECK(moved->kind == Kind::kMoved);
  CHECK(moved->slot == 3999);
  CHECK(to_string(moved->node) == "10.0.0.2:6381");
  CHECK(moved->node.is_cluster);
  CHECK(to_string(redirect_of("ASK 1 fe80::1:7000", asked)->node) == "[fe80::1]:7000");
  CHECK(redirect_of("ASK 1 fe80::1:7000", asked)->kind == Kind::kAsk);
  CHECK(to_string(redirect_of("MOVED 1 :7000", asked)->node) == "one:7000");
  CHECK(redirect_of("MOVED 1 ?:7000", asked)->kind == Kind::kDown);
  CHECK(redirect_of("TRYAGAIN Multiple keys", asked)->kind == Kind::kTryAgain);
  CHECK(redirect_of("CLUSTERDOWN Hash slot not served", asked)->kind == Kind::kDown);
  CHECK_FALSE(redirect_of("MOVED 16384 one:2", asked));
  CHECK_FALSE(redirect_of("MOVED x one:2", asked));
  CHECK_FALSE(redirect_of("OOM command not allowed", asked));
  CHECK_FALSE(redirect_of("", asked));
}

TEST_CASE("answers to CLUSTER SLOTS are taken apart", "[store][cluster]") {
  const auto slots = [](const std::string& text) {
    const auto reply = redis_reply(text);
    REQUIRE(reply);
    return slots_of(*reply, node("asked:1"));
  };
  const std::string range = "*3\r\n:0\r\n:9\r\n";
  const auto plain = slots("*1\r\n" + range + "*2\r\n$1\r\nh\r\n:7\r\n");
  REQUIRE(plain);
  CHECK(to_string(*plain->owner(9)) == "h:7");
  CHECK(plain->owner(10) == nullptr);
  const auto hostless = slots("*1\r\n" + range + "*2\r\n$-1\r\n:7\r\n");
  REQUIRE(hostless);
  CHECK(to_string(*hostless->owner(0)) == "asked:7");
  const auto nameless = slots("*1\r\n" + range + "*4\r\n$1\r\n?\r\n:7\r\n$2\r\nid\r\n"
                              "*2\r\n$2\r\nip\r\n$2\r\nis\r\n");
  REQUIRE(nameless);
  CHECK(to_string(*nameless->owner(0)) == "is:7");
  const auto unknown = slots("*1\r\n" + range + "*3\r\n$1\r\n?\r\n:7\r\n$2\r\nid\r\n");
  REQUIRE(unknown);
  CHECK(unknown->owner(0) == nullptr);
  for (const char* other : {"+OK\r\n", "*1\r\n:0\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n",
                            "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n+h\r\n:7\r\n"}) {
    CAPTURE(other);
    CHECK_FALSE(slots(other));
  }
  // More nodes than there are slots, each of which would be kept.
  std::string many = "*40000\r\n";
  for (int i = 0; i < 40000; ++i) {
    many += "*3\r\n:0\r\n:0\r\n*2\r\n$1\r\nh\r\n:" + std::to_string(i + 1) + "\r\n";
  }
  CHECK_FALSE(slots(many));
}

TEST_CASE("slots that nobody has are named", "[store][cluster]") {
  SlotMap map;
  CHECK(map.lacks() == "0-16383 (16384 of 16384 in all)");
  for (std::size_t slot = 0; slot < kKeySlots; ++slot) {
    if (slot != 7) map.set(static_cast<std::uint16_t>(slot), node("one:1"));
  }
  CHECK(map.lacks() == "7 (1 of 16384 in all)");
  CHECK(map.owner(7) == nullptr);
  map.set(7, node("two:2"));
  CHECK(map.lacks().empty());
  CHECK(map.primaries().size() == 2);
  SlotMap other = map;
  CHECK(other == map);
  other.set(7, node("one:1"));
  CHECK_FALSE(other == map);
  CHECK(other.primaries().size() == 1);
}

TEST_CASE("an address of a cluster names some of its nodes", "[store][cluster]") {
  const std::string text = "redis-cluster://one:1,two:6379,[::1]:3";
  const auto nodes = parse_redis_addresses("redis-cluster://one:1,two,[::1]:3");
  require(nodes);
  REQUIRE(nodes->size() == 3);
  for (const RedisAddress& each : *nodes) CHECK(each.is_cluster);
  CHECK(to_string(*nodes) == text);
  CHECK(part_count(*nodes) == kClusterParts);
  CHECK(part_count(*parse_redis_addresses("one,two,three")) == 3);
  CHECK(StoreAddress(text).text() == text);
  CHECK(StoreAddress("redis-cluster://me:hush@one:1,two:2").text() ==
        "redis-cluster://one:1,two:2");
  const auto with_password = parse_redis_uri("redis-cluster://me:hush@one:1");
  require(with_password);
  CHECK(with_password->credentials.user == "me");
  CHECK(with_password->credentials.password.reveal() == "hush");
  for (const char* wrong :
       {"redis-cluster://", "redis-cluster://one/2", "redis-cluster://one,",
        "one,redis-cluster://b",
        "redis-cluster://one,redis://two", "redis-cluster://one,unix:///r.sock",
        "redis-cluster://one,one", "rediss-cluster://one/2", "redis-cluster://one:1,two/1"}) {
    CAPTURE(wrong);
    CHECK(code_of(parse_redis_addresses(wrong)) == ErrorCode::kUsage);
  }
}

}  // namespace speedo::test
