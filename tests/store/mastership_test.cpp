// Who is master of a job: every kind of store grants it to one at a time.

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "store/mastership.hpp"
#include "store/redis/redis_session.hpp"
#include "store/store_under_test.hpp"

namespace speedo::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong = std::chrono::hours(1);

#define FOR_EACH_STORE()                                                                     \
  const std::string kind = GENERATE(from_range(store_kinds().begin(), store_kinds().end())); \
  CAPTURE(kind);                                                                             \
  StoreUnderTest store(kind)

MasterClaim claim_of(const std::string& holder, std::uint64_t term = 0,
                     milliseconds time = kLong) {
  MasterClaim claim;
  claim.holder = holder;
  claim.term = term;
  claim.time = time;
  return claim;
}

ClaimAnswer asked(MasterStore& store, const MasterClaim& claim) {
  const auto answer = store.claim_master(claim);
  require(answer);
  return *answer;
}

std::uint64_t granted(MasterStore& store, const MasterClaim& claim) {
  const ClaimAnswer answer = asked(store, claim);
  REQUIRE(answer.granted);
  return answer.term;
}

}  // namespace

TEST_CASE("a free job is granted, a held one is not", "[store][master]") {
  FOR_EACH_STORE();
  MasterClaim first = claim_of("host/1 a b");
  first.term_floor = 1'800'000'000'000'000;
  REQUIRE(granted(*store, first) == first.term_floor);
  const ClaimAnswer refused = asked(*store.another(), claim_of("host/2"));
  REQUIRE_FALSE(refused.granted);
  REQUIRE(refused.holder == "host/1 a b");
  REQUIRE(refused.term == first.term_floor);
  REQUIRE(refused.left > kLong / 2);
  REQUIRE(refused.left <= kLong);
}

TEST_CASE("every new term is above all before it", "[store][master]") {
  FOR_EACH_STORE();
  MasterClaim claim = claim_of("host/1");
  REQUIRE(granted(*store, claim) == 1);
  claim.term_floor = 100;
  REQUIRE(granted(*store, claim) == 100);
  claim.holder = "host/2";
  claim.force = true;
  claim.term_floor = 50;
  REQUIRE(granted(*store, claim) == 100 + kTermStride);
  // Beyond what a double holds exactly.
  claim.term_floor = 18'000'000'000'000'000'001U;
  REQUIRE(granted(*store, claim) == 18'000'000'000'000'000'001U);
  claim.holder = "host/3";
  REQUIRE(granted(*store, claim) == 18'000'000'000'000'000'001U + kTermStride);
}

TEST_CASE("a lease that is renewed is held, one that is not ends", "[store][master]") {
  FOR_EACH_STORE();
  const std::uint64_t term = granted(*store, claim_of("host/1", 0, kLong / 2));
  const auto other = store.another();
  REQUIRE(granted(*store, claim_of("host/1", term, 2 * kLong)) == term);
  const ClaimAnswer refused = asked(*other, claim_of("host/2"));
  REQUIRE_FALSE(refused.granted);
  REQUIRE(refused.left > kLong);
  REQUIRE(granted(*store, claim_of("host/1", term, milliseconds{1})) == term);
  store.wait_for_end_of_lease();
  REQUIRE(granted(*other, claim_of("host/2")) == term + kTermStride);
  const auto late = store->claim_master(claim_of("host/1", term));
  REQUIRE(code_of(late) == ErrorCode::kSuperseded);
  REQUIRE_THAT(late.error().message, Catch::Contains("job 'test'") && Catch::Contains("host/2") &&
                                         Catch::Contains("--take-over"));
}

TEST_CASE("a lease ends at its time and not before", "[store][master]") {
  ManualClock clock;
  const auto map = std::make_shared<MemoryKeyValue>(clock);
  ChunkedStore store(map, "test");
  const std::uint64_t term = granted(store, claim_of("host/1", 0, milliseconds{300}));
  for (int i = 0; i < 5; ++i) {
    clock.advance(milliseconds{299});
    const ClaimAnswer refused = asked(store, claim_of("host/2"));
    REQUIRE_FALSE(refused.granted);
    REQUIRE(refused.left == milliseconds{1});
    REQUIRE(granted(store, claim_of("host/1", term, milliseconds{300})) == term);
  }
  clock.advance(milliseconds{300});
  REQUIRE(granted(store, claim_of("host/2")) == term + kTermStride);
}

TEST_CASE("a lease that ended unnoticed is renewed", "[store][master]") {
  FOR_EACH_STORE();
  const std::uint64_t term = granted(*store, claim_of("host/1", 0, milliseconds{1}));
  store.wait_for_end_of_lease();
  REQUIRE(granted(*store, claim_of("host/1", term)) == term);
  REQUIRE_FALSE(asked(*store, claim_of("host/2")).granted);
}

// As a store has it that went back, or was emptied and met a master that had stood still.
TEST_CASE("a lease from before the term that writes have raised is nobody's", "[store][master]") {
  FOR_EACH_STORE();
  const auto newer = store.another();
  newer->fence(9);
  REQUIRE(granted(*store, claim_of("host/1", 5)) == 5);
  require(newer->put_blob("job", "newer"));
  const auto late = store->claim_master(claim_of("host/1", 5));
  REQUIRE(code_of(late) == ErrorCode::kSuperseded);
  REQUIRE_THAT(late.error().message,
               Catch::Contains("another master") && !Catch::Contains("host/1"));
  REQUIRE_FALSE(asked(*store.another(), claim_of("host/3")).granted);
  REQUIRE(granted(*newer, claim_of("host/2", 9)) == 9);
  REQUIRE(asked(*store.another(), claim_of("host/3")).holder == "host/2");
}

TEST_CASE("by force from anybody, else only from the one that is dead", "[store][master]") {
  FOR_EACH_STORE();
  const std::uint64_t first = granted(*store, claim_of("host/1"));
  MasterClaim heir = claim_of("host/2");
  heir.dead_holder = "host/9";
  REQUIRE_FALSE(asked(*store, heir).granted);
  heir.dead_holder = "host/1";
  const std::uint64_t second = granted(*store, heir);
  REQUIRE(second > first);
  // Another that knew of the same death comes too late.
  heir.holder = "host/3";
  const ClaimAnswer refused = asked(*store, heir);
  REQUIRE_FALSE(refused.granted);
  REQUIRE(refused.holder == "host/2");
  heir.force = true;
  REQUIRE(granted(*store, heir) > second);
}

TEST_CASE("a claim may be repeated", "[store][master]") {
  FOR_EACH_STORE();
  MasterClaim claim = claim_of("host/1");
  claim.term_floor = 7;
  REQUIRE(granted(*store, claim) == 7);
  REQUIRE(granted(*store, claim) >= 7);
  const std::uint64_t term = granted(*store, claim);
  REQUIRE(granted(*store, claim_of("host/1", term)) == term);
  REQUIRE(granted(*store, claim_of("host/1", term)) == term);
}

TEST_CASE("a released job is free, and its term stays known", "[store][master]") {
  FOR_EACH_STORE();
  const std::uint64_t term = granted(*store, claim_of("host/1"));
  require(store->release_master(claim_of("host/2", term)));
  require(store->release_master(claim_of("host/1", term + 1)));
  REQUIRE_FALSE(asked(*store, claim_of("host/2")).granted);
  require(store->release_master(claim_of("host/1", term)));
  require(store->release_master(claim_of("host/1", term)));
  REQUIRE(granted(*store, claim_of("host/2")) == term + kTermStride);
  require(store->release_master(claim_of("host/1", term)));
  REQUIRE_FALSE(asked(*store, claim_of("host/3")).granted);
}

TEST_CASE("clear leaves mastership alone", "[store][master]") {
  FOR_EACH_STORE();
  const std::uint64_t term = granted(*store, claim_of("host/1"));
  store->fence(term);
  require(store->put_blob("job", "text"));
  require(store->clear());
  REQUIRE(code_of(store->get_blob("job")) == ErrorCode::kNotFound);
  REQUIRE(asked(*store, claim_of("host/2")).holder == "host/1");
  require(store->release_master(claim_of("host/1", term)));
  REQUIRE(granted(*store, claim_of("host/2")) == term + kTermStride);
}

TEST_CASE("of two claims at once one is granted", "[store][master]") {
  FOR_EACH_STORE();
  constexpr int kRounds = 40;
  const std::vector<std::shared_ptr<ParameterStore>> stores = {store.another(), store.another()};
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    // In turns: a job nobody holds, one whose holder is dead, and one that is renewed meanwhile.
    const std::string before = "old/" + std::to_string(round);
    const std::uint64_t old_term = granted(*store, claim_of(before));
    if (round % 3 == 0) require(store->release_master(claim_of(before, old_term)));
    std::atomic<int> ready{0}, grants{0}, failures{0};
    std::array<ClaimAnswer, 2> answers;
    std::vector<std::thread> claimants;
    for (std::size_t i = 0; i < 2; ++i) {
      claimants.emplace_back([&, i] {
        MasterClaim claim = claim_of(std::to_string(round) + "/" + std::to_string(i));
        if (round % 3 != 0) claim.dead_holder = before;
        ++ready;
        while (ready < 2) std::this_thread::yield();
        const auto answer = stores[i]->claim_master(claim);
        if (!answer) {
          ++failures;
          return;
        }
        answers[i] = *answer;
        if (answer->granted) ++grants;
      });
    }
    if (round % 3 == 2) (void)store->claim_master(claim_of(before, old_term));
    for (std::thread& claimant : claimants) claimant.join();
    if (failures != 0 || grants != 1) ++wrong;
    const std::size_t winner = answers[0].granted ? 0 : 1;
    const std::string name = std::to_string(round) + "/" + std::to_string(winner);
    if (answers[1 - winner].holder != name) ++wrong;
    require(store->release_master(claim_of(name, answers[winner].term)));
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("two that claim by force never get the same term", "[store][master]") {
  FOR_EACH_STORE();
  const std::vector<std::shared_ptr<ParameterStore>> stores = {store.another(), store.another()};
  std::array<std::set<std::uint64_t>, 2> terms;
  std::atomic<int> failures{0};
  std::vector<std::thread> claimants;
  for (std::size_t i = 0; i < 2; ++i) {
    claimants.emplace_back([&, i] {
      MasterClaim claim = claim_of("host/" + std::to_string(i));
      claim.force = true;
      for (int round = 0; round < 50; ++round) {
        const auto answer = stores[i]->claim_master(claim);
        if (!answer || !answer->granted) {
          ++failures;
        } else {
          terms[i].insert(answer->term);
        }
      }
    });
  }
  for (std::thread& claimant : claimants) claimant.join();
  REQUIRE(failures == 0);
  for (const std::uint64_t term : terms[0]) REQUIRE_FALSE(terms[1].contains(term));
}

TEST_CASE("something else in the term's place is kCorrupt", "[store][master]") {
  const std::string bytes = GENERATE(as<std::string>(), "x", "12", "0000000000000000001x",
                                     "000000000000000000011");
  auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore memory(map, "test");
  RedisServer server;
  const auto redis = open(server.tcp_uri());
  auto set = std::make_shared<KvOperation>();
  set->kind = KvOperation::Kind::kSet;
  set->key = term_key("test");
  set->head = bytes;
  require(execute(*map, set));
  auto session = RedisSession::connect(quick_options(server.tcp_uri()), std::nullopt);
  require(session);
  require((*session)->command({"SET", term_key("test"), bytes}));
  for (ParameterStore* store : {static_cast<ParameterStore*>(&memory), redis.get()}) {
    REQUIRE(code_of(store->claim_master(claim_of("host/1"))) == ErrorCode::kCorrupt);
    store->fence(5);
    REQUIRE(code_of(store->put_blob("job", "x")) == ErrorCode::kCorrupt);
    REQUIRE(code_of(store->erase("job")) == ErrorCode::kCorrupt);
    REQUIRE(code_of(store->erase_blob("job")) == ErrorCode::kCorrupt);
    REQUIRE(code_of(store->get_blob("job")) == ErrorCode::kNotFound);
  }
}

TEST_CASE("answers to masters survive their way", "[store][master]") {
  for (const auto kind : {MasterAnswer::Kind::kHeld, MasterAnswer::Kind::kHigher}) {
    const auto back = decode_answer(encode_answer({kind, 12, milliseconds{34}, "host/1 a b"}));
    require(back);
    REQUIRE(back->kind == kind);
    REQUIRE(back->term == 12);
    REQUIRE(back->left == milliseconds{34});
    REQUIRE(back->holder == "host/1 a b");
  }
  require(decode_answer("done"));
  require(decode_answer("corrupt"));
  CHECK(decode_answer("later")->kind == MasterAnswer::Kind::kLater);
  REQUIRE(decode_answer("higher 00000000000000000005 -2 ")->left == milliseconds{0});
  for (const char* text : {"", "no", "done ", "done x", "held", "held 5 6 x",
                           "higher 00000000000000000005", "higher 00000000000000000005 x y",
                           "higher 99999999999999999999 5 y"}) {
    CAPTURE(text);
    REQUIRE(code_of(decode_answer(text)) == ErrorCode::kInternal);
  }
}

}  // namespace speedo::test
