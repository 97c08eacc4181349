// Records and blobs of masters: what a stale one may do, and what readers see meanwhile.

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <thread>

#include <speedo/store/layout.hpp>

#include "store/mastership.hpp"
#include "store/store_under_test.hpp"
#include "store/striking_map.hpp"

namespace speedo::test {
namespace {

#define FOR_EACH_STORE()                                                                     \
  const std::string kind = GENERATE(from_range(store_kinds().begin(), store_kinds().end())); \
  CAPTURE(kind);                                                                             \
  StoreUnderTest store(kind)

std::shared_ptr<ParameterStore> master(const StoreUnderTest& store, std::uint64_t term) {
  auto opened = store.another();
  opened->fence(term);
  return opened;
}

RecordInfo with_state(std::uint64_t version, std::size_t count, std::string state) {
  RecordInfo info = info_of(version, count);
  info.state = std::move(state);
  return info;
}

// Reads the weights, which must be those that pattern() makes of their version.
RecordInfo read_weights(RecordStore& store, std::size_t count) {
  std::vector<float> values(count, -1.0F);
  const auto info = get(store, weights_key(), kModel, values);
  require(info);
  REQUIRE((values == pattern(count, info->version)));
  return *info;
}

// Whether the chunk is there, of a map the test sees into.
bool has(MemoryKeyValue& map, const std::string& key) {
  auto operation = std::make_shared<KvOperation>();
  operation->kind = KvOperation::Kind::kGetWhole;
  operation->key = "speedo:{test}:" + key;
  return execute(map, operation).has_value();
}

}  // namespace

TEST_CASE("a record says which master wrote it, and brings its state", "[store][fence]") {
  FOR_EACH_STORE();
  const auto fenced = master(store, 9);
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{1} << 20U}) {
    std::string state(length, '\0');
    for (std::size_t i = 0; i < length; ++i) state[i] = static_cast<char>(i * 7);
    require(put(*fenced, weights_key(), with_state(length, 30, state), pattern(30, length)));
    const RecordInfo info = read_weights(*store, 30);
    REQUIRE(info.term == 9);
    REQUIRE((info.state == state));
  }
  RecordInfo claims_more = info_of(1, 30);
  claims_more.term = 77;
  require(put(*store, "other", claims_more, pattern(30, 1)));
  REQUIRE((*store->read("other"))->info().term == 0);
}

TEST_CASE("the longest state works, a longer one is refused", "[store][fence]") {
  const std::string kind = GENERATE(as<std::string>(), "memory", "tcp");
  const StoreUnderTest store(kind);
  const auto fenced = master(store, 9);
  const std::string state(kStateBytesMax, 's');
  require(put(*fenced, weights_key(), with_state(1, 3, state), pattern(3, 1)));
  const auto refused =
      put(*fenced, weights_key(), with_state(2, 3, state + "s"), pattern(3, 2));
  REQUIRE(code_of(refused) == ErrorCode::kFull);
  const RecordInfo info = read_weights(*store, 3);
  REQUIRE(info.version == 1);
  REQUIRE((info.state == state));
}

TEST_CASE("a stale master is refused, and nothing of it is seen", "[store][fence]") {
  FOR_EACH_STORE();
  constexpr std::size_t kCount = kChunkElements + 3;
  const auto old_master = master(store, 5), new_master = master(store, 6);
  require(put(*old_master, weights_key(), info_of(1, kCount), pattern(kCount, 1)));
  require(old_master->put_blob("job", "old"));
  // Claimed, but nothing written yet: the old master is refused all the same, and its last record
  // stays whole, since the new one goes on from it.
  MasterClaim claim;
  claim.holder = "host/2";
  claim.time = std::chrono::minutes(1);
  claim.term_floor = 6;
  require(store->claim_master(claim));
  const auto late = put(*old_master, weights_key(), info_of(2, kCount), pattern(kCount, 2));
  REQUIRE(code_of(late) == ErrorCode::kSuperseded);
  REQUIRE_THAT(late.error().message, Catch::Contains("weights") && Catch::Contains("job 'test'") &&
                                         Catch::Contains("host/2") &&
                                         Catch::Contains("--take-over"));
  REQUIRE(code_of(old_master->put_blob("job", "late")) == ErrorCode::kSuperseded);
  REQUIRE(code_of(old_master->erase(weights_key())) == ErrorCode::kSuperseded);
  REQUIRE(code_of(old_master->erase_blob("job")) == ErrorCode::kSuperseded);
  REQUIRE(code_of(old_master->clear()) == ErrorCode::kSuperseded);
  REQUIRE(read_weights(*store, kCount).version == 1);
  REQUIRE(*store->get_blob("job") == "old");

  require(put(*new_master, weights_key(), info_of(3, kCount), pattern(kCount, 3)));
  require(new_master->put_blob("job", "new"));
  for (std::uint64_t version = 4; version < 9; ++version) {
    const auto values = pattern(kCount, version);
    const auto refused = put(*old_master, weights_key(), info_of(version, kCount), values);
    REQUIRE(code_of(refused) == ErrorCode::kSuperseded);
    const RecordInfo info = read_weights(*store, kCount);
    REQUIRE(info.version == 3);
    REQUIRE(info.term == 6);
  }
  REQUIRE(*store->get_blob("job") == "new");
  require(new_master->erase(weights_key()));
  REQUIRE(code_of(store->read(weights_key())) == ErrorCode::kNotFound);
}

TEST_CASE("a master that stands still while it clears erases nothing of its successor's",
          "[store][fence]") {
  FOR_EACH_STORE();
  const int erasure = GENERATE(0, 1);
  const bool all = GENERATE(true, false);
  CAPTURE(erasure, all);
  const auto successor = store.another();
  const auto take_over = [&] {
    MasterClaim claim;
    claim.holder = "host/2";
    claim.time = std::chrono::minutes(1);
    claim.force = true;
    const auto answer = successor->claim_master(claim);
    require(answer);
    successor->fence(answer->term);
    require(put(*successor, weights_key(), info_of(9, 10), pattern(10, 9)));
    require(put(*successor, local_key(5, 3), info_of(9, 10), pattern(10, 9)));
    require(successor->put_blob("job", "new"));
  };
  // Its first put tells each server but the first of its term, with an erasure of nothing.
  int left = static_cast<int>(store.map()->parts()) - 1 + erasure;
  const auto is_erasure = [&](const KvOperation& operation) {
    return operation.kind == KvOperation::Kind::kErase && left-- == 0;
  };
  ChunkedStore old(std::make_shared<StrikingMap>(store.map(), is_erasure, take_over), "test");
  old.fence(5);
  require(put(old, weights_key(), info_of(1, 10), pattern(10, 1)));
  require(old.put_blob("job", "old"));
  // So many that they are not erased at once.
  const std::shared_ptr<KeyValue> map = store.map();
  std::vector<KvPtr> sets;
  for (int i = 0; i < 1200; ++i) {
    sets.push_back(std::make_shared<KvOperation>());
    sets.back()->kind = KvOperation::Kind::kSet;
    sets.back()->key = "speedo:{test}:" + contribution_key(5, 3) + ":s0:c" + std::to_string(i);
    map->submit(sets.back());
  }
  for (const KvPtr& set : sets) set->wait();
  const auto cleared = all ? old.clear() : old.clear_contributions();
  REQUIRE(code_of(cleared) == ErrorCode::kSuperseded);
  REQUIRE(read_weights(*store, 10).version == 9);
  REQUIRE((*store->read(local_key(5, 3)))->info().version == 9);
  REQUIRE(*store->get_blob("job") == "new");
}

TEST_CASE("an empty job is not a stale master's to clear either", "[store][fence]") {
  FOR_EACH_STORE();
  const auto old_master = master(store, 5), new_master = master(store, 6);
  require(new_master->clear());
  REQUIRE(code_of(old_master->clear()) == ErrorCode::kSuperseded);
  REQUIRE(code_of(old_master->clear_contributions()) == ErrorCode::kSuperseded);
}

TEST_CASE("an emptied store belongs to the highest term that writes", "[store][fence]") {
  auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore low(map, "test"), high(map, "test");
  low.fence(5);
  high.fence(6);
  require(put(high, weights_key(), info_of(1, 9), pattern(9, 1)));
  map->set_image({});
  require(put(low, weights_key(), info_of(2, 9), pattern(9, 2)));
  REQUIRE(read_weights(low, 9).term == 5);
  require(put(high, weights_key(), info_of(3, 9), pattern(9, 3)));
  REQUIRE(code_of(put(low, weights_key(), info_of(4, 9), pattern(9, 4))) ==
          ErrorCode::kSuperseded);
  REQUIRE(read_weights(low, 9).version == 3);
  MasterClaim claim;
  claim.holder = "host/1";
  claim.time = std::chrono::minutes(1);
  REQUIRE(low.claim_master(claim)->term == 6 + kTermStride);
}

TEST_CASE("masters leave no chunks behind", "[store][fence]") {
  auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore plain(map, "test"), first(map, "test"), second(map, "test");
  first.fence(5);
  second.fence(6);
  constexpr std::size_t kTwo = kChunkElements + 1;
  require(put(plain, weights_key(), info_of(0, kTwo), pattern(kTwo, 0)));
  for (std::uint64_t version = 1; version < 5; ++version) {
    require(put(first, weights_key(), info_of(version, kTwo), pattern(kTwo, version)));
  }
  REQUIRE_FALSE(has(*map, "weights:s0:c0"));
  REQUIRE_FALSE(has(*map, "weights:s0:c1"));
  REQUIRE(has(*map, "weights:t5:s0:c1"));
  REQUIRE(has(*map, "weights:t5:s2:c1"));

  SECTION("a shorter record takes the end of longer ones with it") {
    require(put(first, weights_key(), info_of(5, 10), pattern(10, 5)));
    for (const char* key : {"weights:t5:s0:c1", "weights:t5:s1:c1", "weights:t5:s2:c1"}) {
      REQUIRE_FALSE(has(*map, key));
    }
    REQUIRE(read_weights(plain, 10).version == 5);
  }
  SECTION("a new master's first put") {
    require(put(second, weights_key(), info_of(5, 10), pattern(10, 5)));
    for (const char* slot : {"s0", "s1", "s2"}) {
      for (const char* chunk : {"c0", "c1"}) {
        REQUIRE_FALSE(has(*map, std::string("weights:t5:") + slot + ":" + chunk));
      }
    }
    // The old one's next put is refused, and cleans up after itself.
    REQUIRE_FALSE(put(first, weights_key(), info_of(6, kTwo), pattern(kTwo, 6)).has_value());
    for (const char* slot : {"s0", "s1", "s2"}) {
      REQUIRE_FALSE(has(*map, std::string("weights:t5:") + slot + ":c0"));
    }
    REQUIRE(read_weights(plain, 10).version == 5);
  }
  SECTION("erase") {
    require(first.erase(weights_key()));
    for (const char* slot : {"s0", "s1", "s2"}) {
      REQUIRE_FALSE(has(*map, std::string("weights:t5:") + slot + ":c1"));
    }
  }
}

namespace {

// Of what is there of the weights, their copies and a part's checkpoint: the masters' terms.
std::set<std::uint64_t> terms_in(const StoreUnderTest& store) {
  const auto keys = store.map()->list("speedo:{test}:");
  require(keys);
  std::set<std::uint64_t> terms;
  for (const std::string& key : *keys) {
    if (const auto chunk = fenced_chunk("test", key)) terms.insert(chunk->term);
  }
  return terms;
}

// A master of this term dies before any manifest of its own.
void die_within_put(const StoreUnderTest& store, std::uint64_t term, std::size_t count) {
  const auto dying = master(store, term);
  const auto values = pattern(count, term);
  for (const std::string& key : {weights_key(), checkpoint_key(), part_key(0, checkpoint_key()),
                                 part_copy_key(0, store->parts(), weights_key())}) {
    const auto writer = dying->write(key, info_of(term, count));
    for (std::size_t chunk = 0; chunk < chunk_count(count); ++chunk) {
      writer->write(chunk, chunk_of(std::span<const float>(values), chunk));
    }
    while (!writer->is_sent()) std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("what masters left that died in their first put goes with the next one",
          "[store][fence]") {
  FOR_EACH_STORE();
  constexpr std::size_t kTwo = kChunkElements + 1;
  const auto first = master(store, 5);
  require(put(*first, weights_key(), info_of(1, kTwo), pattern(kTwo, 1)));
  require(put(*first, part_key(0, checkpoint_key()), info_of(1, 10), pattern(10, 1)));
  // A copy of the weights, which no manifest of its own names.
  {
    const auto values = pattern(10, 1);
    const auto copy = first->write(part_copy_key(0, store->parts(), weights_key()),
                                   info_of(1, 10));
    copy->write(0, values);
    while (!copy->is_sent()) std::this_thread::yield();
  }
  for (const std::uint64_t term : {6, 7}) die_within_put(store, term, kTwo);
  // Of one that is to come.
  const auto later = std::make_shared<KvOperation>();
  later->kind = KvOperation::Kind::kSet;
  later->key = RecordKeys("test", weights_key()).chunk(9, 0, 0);
  require(execute(*store.map(), later));
  const auto worker = store.another();
  require(put(*worker, contribution_key(5, 1), info_of(1, 10), pattern(10, 1)));
  const auto next = master(store, 8);
  require(next->put_blob("probe", ""));
  REQUIRE(code_of(master(store, 7)->erase_unnamed()) == ErrorCode::kSuperseded);
  CHECK(terms_in(store) == std::set<std::uint64_t>{5, 6, 7, 9});
  require(next->erase_unnamed());
  CHECK(terms_in(store) == std::set<std::uint64_t>{5, 9});
  CHECK(read_weights(*store, kTwo).version == 1);
  std::vector<float> target(10);
  require(get(*store, part_key(0, checkpoint_key()), kModel, target));
  const auto keys = store.map()->list("speedo:{test}:" +
                                      part_copy_key(0, store->parts(), weights_key()) + ":t5");
  require(keys);
  CHECK(keys->size() == 1);
  require(store->read(contribution_key(5, 1)));
  require(next->erase_unnamed());
  require(store.another()->erase_unnamed());  // of no master
  require(put(*next, weights_key(), info_of(2, kTwo), pattern(kTwo, 2)));
  CHECK(read_weights(*store, kTwo).version == 2);
}

// A master that dies before its manifest leaves what the server, gone back in time, shows.
TEST_CASE("a put after the store has gone back leaves what its manifest names", "[store][fence]") {
  const std::uint64_t later = GENERATE(1, 2, 3, 4);  // versions that are lost
  auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore store(map, "test");
  store.fence(7);
  require(put(store, weights_key(), with_state(1, 30, "1"), pattern(30, 1)));
  const MemoryImage image = map->image();
  for (std::uint64_t version = 2; version < 2 + later; ++version) {
    require(put(store, weights_key(), with_state(version, 30, ""), pattern(30, version)));
  }
  map->set_image(image);
  const auto values = pattern(30, 2 + later);
  {
    const auto writer = store.write(weights_key(), with_state(2 + later, 30, ""));
    writer->write(0, values);
  }
  REQUIRE(read_weights(store, 30).version == 1);
}

TEST_CASE("records of other masters' workers lie apart", "[store][fence]") {
  FOR_EACH_STORE();
  require(put(*store, contribution_key(5, 1), info_of(1, 10), pattern(10, 1)));
  require(put(*store, contribution_key(6, 1), info_of(2, 10), pattern(10, 2)));
  require(put(*master(store, 6), local_key(6, 1), info_of(3, 10), pattern(10, 3)));
  const std::vector<std::string> keys = {contribution_key(5, 1), local_key(5, 1),
                                         contribution_key(6, 1), local_key(6, 1)};
  const auto readers = store->read_all(keys);
  REQUIRE(readers.size() == 4);
  REQUIRE((*readers[0])->info().version == 1);
  REQUIRE(code_of(readers[1]) == ErrorCode::kNotFound);
  REQUIRE(readers[1].error().message.find(keys[1]) != std::string::npos);
  REQUIRE((*readers[2])->info().version == 2);
  REQUIRE((*readers[3])->info().version == 3);
  std::vector<float> target(10);
  (*readers[3])->request(0, target);
  require((*readers[3])->wait(0));
  REQUIRE(target == pattern(10, 3));
  REQUIRE(store->read_all({}).empty());
  for (const std::string& key : keys) {
    REQUIRE(is_handed_over(key));
    const bool is_of_worker = key == contribution_key(5, 1) || key == contribution_key(6, 1);
    REQUIRE(key.starts_with(contribution_key_prefix()) == is_of_worker);
  }
  REQUIRE_FALSE(is_handed_over(weights_key()));
  REQUIRE_FALSE(is_handed_over(checkpoint_key()));
}

// Each master writes as fast as it can; every now and then the stale one becomes the newer. The
// state must belong to the values, and no reader may ever find less than a whole record.
TEST_CASE("readers beside two masters see whole records", "[store][fence]") {
  FOR_EACH_STORE();
  constexpr std::size_t kCount = kChunkElements + 1000;
  constexpr std::uint64_t kTakeOvers = 30, kPatience = 100000;
  const auto values_of = [](std::uint64_t version) {
    return std::vector<float>(kCount, static_cast<float>(version));
  };
  std::atomic<std::uint64_t> next_version{1};
  require(put(*master(store, 1), weights_key(), with_state(0, kCount, "0"), values_of(0)));
  std::atomic<bool> done{false};
  std::atomic<int> mixed{0}, failed{0}, reads{0}, refused{0}, wrong{0}, back{0};
  std::thread reader([&, own = store.another()] {
    std::vector<float> target(kCount);
    std::uint64_t newest_term = 0;
    while (!done) {
      const auto info = get(*own, weights_key(), kModel, target);
      if (!info) {
        if (info.error().code != ErrorCode::kNotFound) ++failed;
        continue;
      }
      if ((target != values_of(info->version))) ++mixed;
      if (info->state != std::to_string(info->version)) ++mixed;
      if (info->term < newest_term) ++back;
      newest_term = info->term;
      ++reads;
    }
  });
  std::atomic<std::uint64_t> term{1};
  std::array<std::uint64_t, 2> newest{};  // of each master
  std::vector<std::thread> masters;
  for (std::size_t i = 0; i < newest.size(); ++i) {
    masters.emplace_back([&, i, own = store.another()] {
      while (true) {
        const std::uint64_t mine = ++term;
        // Until something was read beside them; the end of their patience guards against hanging.
        if (mine > kPatience || (mine > kTakeOvers && reads > 0)) return;
        newest[i] = mine;
        own->fence(mine);
        // Until the other one has taken over.
        while (true) {
          const std::uint64_t version = next_version++;
          const auto put_done = put(*own, weights_key(),
                                    with_state(version, kCount, std::to_string(version)),
                                    values_of(version));
          if (!put_done && put_done.error().code != ErrorCode::kSuperseded) ++wrong;
          if (!put_done) ++refused;
          if (!put_done || version % 4 == 0) break;
        }
      }
    });
  }
  for (std::thread& thread : masters) thread.join();
  const RecordInfo last = (*store->read(weights_key()))->info();
  done = true;
  reader.join();
  REQUIRE(mixed == 0);
  REQUIRE(failed == 0);
  REQUIRE(wrong == 0);
  REQUIRE(back == 0);
  REQUIRE(reads > 0);
  REQUIRE(last.term == std::max(newest[0], newest[1]));
}

}  // namespace speedo::test
